"""The names of the functions that a side's Python file may define."""

MODEL, INPUTS, OUTPUTS, LOSS, OPTIMIZER = "model", "inputs", "outputs", "loss", "optimizer"
BATCHES, STEP, PREDICT = "batches", "step", "predict"
