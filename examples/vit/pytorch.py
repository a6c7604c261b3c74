"""A small vision transformer in PyTorch: modules with the canonical names."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from steelyard_worker.frameworks.pytorch import layers


class Block(nn.Module):
    """Pre-norm attention and perceptron over (N, T, width)."""

    def __init__(self, width: int, heads: int, hidden: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width, eps=1e-6), nn.LayerNorm(width, eps=1e-6)
        self.query, self.key, self.value, self.out = (nn.Linear(width, width) for _ in range(4))
        self.up, self.down = nn.Linear(width, hidden), nn.Linear(hidden, width)

    def forward(self, x: Tensor) -> Tensor:
        normed = self.norm1(x)
        split = (
            part(normed).unflatten(-1, (self.heads, -1)).transpose(1, 2) for part in (self.query, self.key, self.value)
        )
        x = x + self.out(F.scaled_dot_product_attention(*split).transpose(1, 2).flatten(2))
        return x + self.down(F.gelu(self.up(self.norm2(x))))


class Network(nn.Module):
    """Images (N, C, H, W) -> logits (N, classes)."""

    def __init__(self, sizes: dict[str, Any]) -> None:
        super().__init__()
        width, self.size = sizes["width"], sizes["patch"]
        patches = (sizes["image"] // self.size) ** 2
        self.patch = nn.Linear(sizes["channels"] * self.size**2, width)
        self.token = nn.Parameter(torch.empty(1, width))
        self.position = nn.Parameter(torch.empty(patches + 1, width))
        for number in range(sizes["blocks"]):
            self.add_module(f"block{number}", Block(width, sizes["heads"], sizes["hidden"]))
        self.blocks = [self.get_submodule(f"block{number}") for number in range(sizes["blocks"])]
        self.norm, self.head = nn.LayerNorm(width, eps=1e-6), nn.Linear(width, sizes["classes"])

    def forward(self, image: Tensor) -> dict[str, Tensor]:
        cut = image.unfold(2, self.size, self.size).unfold(3, self.size, self.size)  # N, C, rows, columns, patch, patch
        x = self.patch(cut.permute(0, 2, 3, 1, 4, 5).flatten(3).flatten(1, 2))
        x = torch.cat((self.token.expand(len(x), 1, -1), x), dim=1) + self.position
        for block in self.blocks:
            x = block(x)
        return {"logits": self.head(self.norm(x[:, 0]))}


INPUTS = ("image",)


def build(sizes: dict[str, Any]) -> nn.Module:
    """Return the network; its weights are loaded later."""
    return Network(sizes)


def variables(network: nn.Module) -> dict[str, Tensor]:
    """Map canonical names to parameters."""
    return {name.removeprefix("."): tensor for name, tensor in layers.named_by_module(network).items()}


def loss(outputs: dict[str, Tensor], batch: dict[str, Tensor]) -> Tensor:
    """Mean softmax cross-entropy from logits."""
    return F.cross_entropy(outputs["logits"], batch["label"])
