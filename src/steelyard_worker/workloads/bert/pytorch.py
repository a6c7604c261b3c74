"""BERT in PyTorch: modules with the canonical names."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from steelyard_worker.frameworks.pytorch import layers
from steelyard_worker.frameworks.pytorch.attention import SelfAttention

EPSILON = 1e-12


class Attention(SelfAttention):
    """Self-attention, output projection, residual, layer norm."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__(width, heads)
        self.output = nn.Linear(width, width)
        self.norm = nn.LayerNorm(width, eps=EPSILON)

    def forward(self, x: Tensor, keep: Tensor) -> Tensor:
        return self.norm(x + self.output(super().forward(x, keep)))


class Layer(nn.Module):
    """One encoder layer: (N, T, hidden) -> (N, T, hidden)."""

    def __init__(self, sizes: dict[str, Any]) -> None:
        super().__init__()
        hidden, inner = sizes["hidden"], sizes["intermediate"]
        self.attention = Attention(hidden, sizes["heads"])
        self.intermediate, self.output = nn.Linear(hidden, inner), nn.Linear(inner, hidden)
        self.norm = nn.LayerNorm(hidden, eps=EPSILON)
        self.gelu = gelu(sizes)

    def forward(self, x: Tensor, keep: Tensor) -> Tensor:
        x = self.attention(x, keep)
        return self.norm(x + self.output(self.gelu(self.intermediate(x))))


class Embeddings(nn.Module):
    """Ids and segments (N, T) -> (N, T, hidden)."""

    def __init__(self, sizes: dict[str, Any]) -> None:
        super().__init__()
        hidden = sizes["hidden"]
        self.word = nn.Embedding(sizes["vocabulary"], hidden)
        self.position = nn.Embedding(sizes["positions"], hidden)
        self.segment = nn.Embedding(2, hidden)
        self.norm = nn.LayerNorm(hidden, eps=EPSILON)

    def forward(self, ids: Tensor, segments: Tensor) -> Tensor:
        return self.norm(self.word(ids) + self.position.weight[: ids.shape[1]] + self.segment(segments))


class Words(nn.Module):
    """States at the masked places (N, M, hidden) -> scores of all words (N, M, vocabulary), by the word embedding."""

    def __init__(self, sizes: dict[str, Any]) -> None:
        super().__init__()
        self.transform = nn.Linear(sizes["hidden"], sizes["hidden"])
        self.norm = nn.LayerNorm(sizes["hidden"], eps=EPSILON)
        self.bias = nn.Parameter(torch.zeros(sizes["vocabulary"]))
        self.gelu = gelu(sizes)

    def forward(self, x: Tensor, embedding: Tensor) -> Tensor:
        return F.linear(self.norm(self.gelu(self.transform(x))), embedding, self.bias)


class Network(nn.Module):
    """Tokens of two sentences -> scores of the masked words, and of the second being the next (0) or a random one (1)."""

    def __init__(self, sizes: dict[str, Any]) -> None:
        super().__init__()
        self.embeddings = Embeddings(sizes)
        for number in range(sizes["layers"]):
            self.add_module(f"layer{number}", Layer(sizes))
        self.encoder = [getattr(self, f"layer{number}") for number in range(sizes["layers"])]
        self.pooler = nn.Linear(sizes["hidden"], sizes["hidden"])
        self.words = Words(sizes)
        self.next = nn.Linear(sizes["hidden"], 2)

    def forward(self, input_ids: Tensor, input_mask: Tensor, segment_ids: Tensor, places: Tensor) -> dict[str, Tensor]:
        x = self.embeddings(input_ids, segment_ids)
        keep = input_mask[:, None, None, :] > 0
        for layer in self.encoder:
            x = layer(x, keep)
        # One row per masked position: scoring every position would make the forward pass a fifth longer.
        rows = places + x.shape[1] * torch.arange(len(x), device=x.device)[:, None]
        masked = x.flatten(0, 1).index_select(0, rows.flatten()).unflatten(0, places.shape)
        pooled = torch.tanh(self.pooler(x[:, 0]))
        return {"words": self.words(masked, self.embeddings.word.weight), "next": self.next(pooled)}


def gelu(sizes: dict[str, Any]) -> nn.GELU:
    """Return the exact GELU or its tanh form (P-30)."""
    return nn.GELU(approximate="tanh" if sizes["gelu"] == "tanh" else "none")


INPUTS = ("input_ids", "input_mask", "segment_ids", "masked_lm_positions")


def build(sizes: dict[str, Any]) -> nn.Module:
    """Return the network; its weights are loaded later."""
    return Network(sizes)


def variables(network: nn.Module) -> dict[str, Tensor]:
    """Map canonical names to parameters."""
    return layers.named_by_module(network)


def loss(outputs: dict[str, Tensor], batch: dict[str, Tensor]) -> Tensor:
    """Weighted mean over all masked words of the batch, plus the mean over its sentence pairs."""
    words = F.cross_entropy(outputs["words"].flatten(0, 1), batch["masked_lm_ids"].flatten(), reduction="none")
    weights = batch["masked_lm_weights"].flatten()
    following = F.cross_entropy(outputs["next"], batch["next_sentence_label"])
    return (words * weights).sum() / (weights.sum() + 1e-5) + following
