"""One side of a port: a user's own model, unmodified, in its framework's interpreter; it answers requests about its tensors."""

OWN = "own"
"""The mode of a side that is timed: how its code runs is decided by that code."""
