"""The network in PyTorch; nothing is frozen here, because network.py says what is."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torch.nn import functional as F

from steelyard_worker.frameworks.pytorch import layers


class Network(nn.Module):
    """Images (N, C, H, W) -> logits (N, classes)."""

    def __init__(self, sizes: dict[str, Any]) -> None:
        super().__init__()
        self.first = nn.Conv2d(3, sizes["channels"], 3, padding=1, bias=False)
        self.second = nn.Conv2d(sizes["channels"], sizes["channels"], 3, padding=1, bias=False)
        self.head = nn.Linear(sizes["channels"], sizes["classes"])

    def forward(self, image: torch.Tensor) -> dict[str, torch.Tensor]:
        x = F.relu(self.second(F.relu(self.first(image))))
        return {"logits": self.head(x.mean((2, 3)))}


INPUTS = ("image",)


def build(sizes: dict[str, Any]) -> nn.Module:
    """Return the network; its weights are loaded later."""
    return Network(sizes)


def variables(network: nn.Module) -> dict[str, torch.Tensor]:
    """Map canonical names to tensors."""
    return layers.named_by_module(network)


def loss(outputs: dict[str, torch.Tensor], batch: dict[str, torch.Tensor]) -> torch.Tensor:
    """Mean softmax cross-entropy from logits."""
    return F.cross_entropy(outputs["logits"], batch["label"])
