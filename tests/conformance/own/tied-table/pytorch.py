"""The network in PyTorch, tied as in its language models: two modules share one tensor."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torch.nn import functional as F

from steelyard_worker.frameworks.pytorch import layers


class Network(nn.Module):
    """Tokens (N, T) -> logits (N, vocabulary)."""

    def __init__(self, sizes: dict[str, Any]) -> None:
        super().__init__()
        self.table = nn.Embedding(sizes["vocabulary"], sizes["width"])
        self.mix = nn.Linear(sizes["width"], sizes["width"])
        self.out = nn.Linear(sizes["width"], sizes["vocabulary"], bias=False)
        self.out.weight = self.table.weight

    def forward(self, tokens: torch.Tensor) -> dict[str, torch.Tensor]:
        return {"logits": self.out(torch.tanh(self.mix(self.table(tokens).mean(1))))}


INPUTS = ("tokens",)


def build(sizes: dict[str, Any]) -> nn.Module:
    """Return the network; its weights are loaded later."""
    return Network(sizes)


def variables(network: nn.Module) -> dict[str, torch.Tensor]:
    """Map canonical names to tensors."""
    return layers.named_by_module(network)


def loss(outputs: dict[str, torch.Tensor], batch: dict[str, torch.Tensor]) -> torch.Tensor:
    """Mean softmax cross-entropy from logits."""
    return F.cross_entropy(outputs["logits"], batch["label"])
