"""Tensors with given gradients in PyTorch."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn


class Network(nn.Module):
    """Gradients of all tensors, (1, ...) each -> the loss (1,)."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(6, 8))
        self.bias = nn.Parameter(torch.empty(12))
        self.gamma = nn.Parameter(torch.empty(10))
        self.beta = nn.Parameter(torch.empty(10))
        self.table = nn.Embedding(9, 4)
        self.fixed = nn.Parameter(torch.empty(5), requires_grad=False)

    def forward(
        self, weight: Tensor, bias: Tensor, gamma: Tensor, beta: Tensor, rows: Tensor, table: Tensor, fixed: Tensor
    ) -> dict[str, Tensor]:
        found = (self.weight * weight).sum() + (self.bias * bias).sum() + (self.fixed * fixed).sum()
        found = found + (self.gamma * gamma).sum() + (self.beta * beta).sum() + (self.table(rows) * table).sum()
        return {"total": found[None]}


# Inputs of `forward`, in order; `loss` gets all inputs.
INPUTS = ("weight", "bias", "gamma", "beta", "rows", "table", "fixed")


def build(sizes: dict[str, Any]) -> nn.Module:
    """Return the network; its weights are loaded later."""
    del sizes
    return Network()


def variables(network: Network) -> dict[str, Tensor]:
    """Map canonical names to parameters."""
    return {
        "kernel.weight": network.weight,
        "kernel.bias": network.bias,
        "norm.gamma": network.gamma,
        "norm.beta": network.beta,
        "table.weight": network.table.weight,
        "fixed.weight": network.fixed,
    }


def loss(outputs: dict[str, Tensor], batch: dict[str, Tensor]) -> Tensor:
    """The sum."""
    del batch
    return outputs["total"].mean()
