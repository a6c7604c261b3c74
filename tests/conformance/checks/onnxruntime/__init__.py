"""What the ONNX Runtime adapter relies on; run by the interpreter of its environment."""

MODULES = ("settings", "networks")
