"""A few tensors whose gradients are given: the loss is the sum of every tensor times an input of its shape.

It is no workload. Certificates train it to check an update rule by itself, over many steps (see `steelyard_worker.rules`). It has
a tensor of every kind that rules treat differently: a kernel, a bias, scale and shift of a norm, a table of which a step looks up
some rows, and a tensor that is not trained.
"""

from __future__ import annotations

from typing import Any

from steelyard_worker.network import Input, Network, Parameter

TENSORS = (
    Parameter("kernel.weight", (6, 8), "dense", "constant:0"),
    Parameter("kernel.bias", (12,), "bias", "constant:0"),
    Parameter("norm.gamma", (10,), "gamma", "constant:1"),
    Parameter("norm.beta", (10,), "beta", "constant:0"),
    Parameter("table.weight", (9, 4), "embedding", "constant:0"),
    Parameter("fixed.weight", (5,), "vector", "constant:1", trainable=False),
)
# Rows of the table that a step looks up, each once.
ROWS = 6


def describe(sizes: dict[str, Any]) -> Network:
    """Sizes: batch, which is 1. Inputs: for each tensor its gradient, for the table those of the rows and their numbers."""
    del sizes
    inputs = (
        Input("weight", (6, 8), "float32"),
        Input("bias", (12,), "float32"),
        Input("gamma", (10,), "float32"),
        Input("beta", (10,), "float32"),
        Input("rows", (ROWS,), "int32", high=9),
        Input("table", (ROWS, 4), "float32"),
        Input("fixed", (5,), "float32"),
    )
    return Network(TENSORS, inputs, macs=sum(each.count for each in TENSORS))
