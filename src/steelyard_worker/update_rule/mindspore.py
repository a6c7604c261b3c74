"""Tensors with given gradients in MindSpore."""

from __future__ import annotations

from typing import Any

import numpy as np
from mindspore import Parameter, Tensor, nn, ops


class Network(nn.Cell):
    """Gradients of all tensors, (1, ...) each -> the loss (1,)."""

    def __init__(self) -> None:
        super().__init__()
        self.weight, self.bias = _tensor("weight", 6, 8), _tensor("bias", 12)
        self.gamma, self.beta = _tensor("gamma", 10), _tensor("beta", 10)
        self.table = nn.Embedding(9, 4)
        self.fixed = _tensor("fixed", 5)
        self.fixed.requires_grad = False

    def construct(
        self, weight: Tensor, bias: Tensor, gamma: Tensor, beta: Tensor, rows: Tensor, table: Tensor, fixed: Tensor
    ) -> tuple[Tensor]:
        found = ops.sum(self.weight * weight) + ops.sum(self.bias * bias) + ops.sum(self.fixed * fixed)
        found = found + ops.sum(self.gamma * gamma) + ops.sum(self.beta * beta)
        found = found + ops.sum(self.table(rows) * table)
        return (ops.reshape(found, (1,)),)


def _tensor(name: str, *shape: int) -> Parameter:
    return Parameter(Tensor(np.zeros(shape, np.float32)), name=name)


class Loss(nn.Cell):
    """The sum."""

    def construct(self, total: Tensor) -> Tensor:
        return ops.mean(total)


# Inputs of the network, inputs of the loss in addition to the outputs, and names of the outputs.
INPUTS, TARGETS, OUTPUTS = ("weight", "bias", "gamma", "beta", "rows", "table", "fixed"), (), ("total",)


def build(sizes: dict[str, Any]) -> nn.Cell:
    """Return the network; its weights are loaded later."""
    del sizes
    return Network()


def variables(network: Network) -> dict[str, Parameter]:
    """Map canonical names to parameters."""
    return {
        "kernel.weight": network.weight,
        "kernel.bias": network.bias,
        "norm.gamma": network.gamma,
        "norm.beta": network.beta,
        "table.weight": network.table.embedding_table,
        "fixed.weight": network.fixed,
    }


def loss() -> nn.Cell:
    """The sum."""
    return Loss()
