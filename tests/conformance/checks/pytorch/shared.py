"""What several checks of PyTorch use."""

from pathlib import Path

import steelyard_worker

WORKLOADS = Path(steelyard_worker.__file__).parent / "workloads"
KNOBS = {"layout": "channels-last", "lstm": "fused", "embedding": "dense", "onednn": True, "cudnn_search": False}
KNOBS |= {"shapes": "automatic", "tf32": False, "dropout": "off", "recomputation": "none"}
KNOBS |= {"micro_batches": 4, "cuda_graphs": False, "subnormals": "kept"}
