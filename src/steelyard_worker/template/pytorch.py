"""The network in PyTorch: `torch.nn` modules named as the canonical tensors are."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from steelyard_worker.frameworks.pytorch import layers


class Network(nn.Module):
    """Images (N, C, H, W) -> logits (N, classes)."""

    def __init__(self, sizes: dict[str, Any]) -> None:
        super().__init__()
        self.first = nn.Linear(sizes["channels"] * sizes["image"] ** 2, sizes["hidden"])
        self.head = nn.Linear(sizes["hidden"], sizes["classes"])

    def forward(self, image: Tensor) -> dict[str, Tensor]:
        return {"logits": self.head(F.relu(self.first(torch.flatten(image, 1))))}


# What `forward` takes, in order; the other inputs of the network go to `loss`.
INPUTS = ("image",)


def build(sizes: dict[str, Any]) -> nn.Module:
    """Return the network with whatever weights PyTorch gives it."""
    return Network(sizes)


def variables(network: nn.Module) -> dict[str, Tensor]:
    """Map canonical names to parameters and buffers."""
    return layers.named_by_module(network)


def loss(outputs: dict[str, Tensor], batch: dict[str, Tensor]) -> Tensor:
    """Mean softmax cross-entropy from logits."""
    return F.cross_entropy(outputs["logits"], batch["label"])
