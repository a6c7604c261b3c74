"""steelyard weighs deep-learning frameworks against each other, fairly."""

__version__ = "0.1.0"
