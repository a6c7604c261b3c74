"""steelyard compares the speed of deep-learning frameworks on one machine."""

__version__ = "0.1.0"
