"""A small GPT in PyTorch: modules with the canonical names."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from steelyard_worker.frameworks.pytorch import layers


class Block(nn.Module):
    """Causal pre-norm attention and perceptron over (N, T, width)."""

    def __init__(self, width: int, heads: int, hidden: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.query, self.key, self.value, self.out = (nn.Linear(width, width) for _ in range(4))
        self.up, self.down = nn.Linear(width, hidden), nn.Linear(hidden, width)

    def forward(self, x: Tensor) -> Tensor:
        normed = self.norm1(x)
        split = (
            part(normed).unflatten(-1, (self.heads, -1)).transpose(1, 2) for part in (self.query, self.key, self.value)
        )
        attended = F.scaled_dot_product_attention(*split, is_causal=True)
        x = x + self.out(attended.transpose(1, 2).flatten(2))
        return x + self.down(F.gelu(self.up(self.norm2(x)), approximate="tanh"))


class Network(nn.Module):
    """Tokens (N, T) -> logits (N, T, vocabulary)."""

    def __init__(self, sizes: dict[str, Any]) -> None:
        super().__init__()
        width = sizes["width"]
        self.token = nn.Parameter(torch.empty(sizes["vocabulary"], width))
        self.position = nn.Parameter(torch.empty(sizes["length"], width))
        for number in range(sizes["blocks"]):
            self.add_module(f"block{number}", Block(width, sizes["heads"], sizes["hidden"]))
        self.blocks = [self.get_submodule(f"block{number}") for number in range(sizes["blocks"])]
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, sizes["vocabulary"], bias=False)

    def forward(self, tokens: Tensor) -> dict[str, Tensor]:
        x = F.embedding(tokens, self.token) + self.position
        for block in self.blocks:
            x = block(x)
        return {"logits": self.head(self.norm(x))}


INPUTS = ("tokens",)


def build(sizes: dict[str, Any]) -> nn.Module:
    """Return the network; its weights are loaded later."""
    return Network(sizes)


def variables(network: nn.Module) -> dict[str, Tensor]:
    """Map canonical names to parameters."""
    return {name.removeprefix("."): tensor for name, tensor in layers.named_by_module(network).items()}


def loss(outputs: dict[str, Tensor], batch: dict[str, Tensor]) -> Tensor:
    """Mean softmax cross-entropy over all tokens."""
    return F.cross_entropy(outputs["logits"].flatten(0, 1), batch["targets"].flatten().long())
