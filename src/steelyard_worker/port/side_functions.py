"""The names of the functions that a side's Python file may define, and of the mode in which its code is timed."""

MODEL, INPUTS, OUTPUTS, LOSS, OPTIMIZER = "model", "inputs", "outputs", "loss", "optimizer"
BATCHES, STEP, PREDICT = "batches", "step", "predict"
OWN = "own"
"""The mode of a side that is timed: how its code runs is decided by that code."""
