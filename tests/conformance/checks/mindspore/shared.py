"""What several checks of MindSpore use."""

KNOBS = {"avx512": "auto", "lstm": "fused", "embedding": "dense", "dropout": "off", "recomputation": "none"}
