"""What several checks of ONNX Runtime use."""

from steelyard_worker.case import Settings

SETTINGS = Settings("from-pytorch", threads=2, knobs={"optimisation": "all", "spinning": True})
