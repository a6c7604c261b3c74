"""BERT in MindSpore: cells with the canonical names; states between embeddings and heads are (N * T, hidden)."""

from __future__ import annotations

from typing import Any

import numpy as np
from mindspore import Parameter, Tensor, nn, ops

from steelyard_worker.frameworks.mindspore import layers
from steelyard_worker.frameworks.mindspore.attention import SelfAttention, masked_scores


def layer_norm(sizes: dict[str, Any]) -> nn.LayerNorm:
    """Return a layer norm; MindSpore's default epsilon is 1e-7 (P-07)."""
    return nn.LayerNorm((sizes["hidden"],), epsilon=1e-12)


def gelu(sizes: dict[str, Any]) -> nn.GELU:
    """Return the exact GELU or its tanh form, which is MindSpore's default (P-30)."""
    return nn.GELU(approximate=sizes["gelu"] == "tanh")


class Attention(SelfAttention):
    """Self-attention, output projection, residual, layer norm."""

    def __init__(self, sizes: dict[str, Any]) -> None:
        super().__init__(sizes["hidden"], sizes["heads"])
        self.output, self.norm = nn.Dense(sizes["hidden"], sizes["hidden"]), layer_norm(sizes)

    def construct(self, x: Tensor, masked: Tensor) -> Tensor:
        return self.norm(x + self.output(super().construct(x, masked)))


class Layer(nn.Cell):
    """One encoder layer: (N * T, hidden) -> (N * T, hidden)."""

    def __init__(self, sizes: dict[str, Any]) -> None:
        super().__init__()
        self.attention = Attention(sizes)
        self.intermediate = nn.Dense(sizes["hidden"], sizes["intermediate"])
        self.output = nn.Dense(sizes["intermediate"], sizes["hidden"])
        self.norm, self.gelu = layer_norm(sizes), gelu(sizes)

    def construct(self, x: Tensor, masked: Tensor) -> Tensor:
        x = self.attention(x, masked)
        return self.norm(x + self.output(self.gelu(self.intermediate(x))))


class Table(nn.Cell):
    """An embedding whose rows are its `weight`."""

    def __init__(self, rows: int, width: int) -> None:
        super().__init__()
        self.weight = Parameter(Tensor(np.zeros((rows, width), np.float32)))

    def construct(self, ids: Tensor) -> Tensor:
        return ops.gather(self.weight, ids, 0)


class Embeddings(nn.Cell):
    """Ids and segments (N, T) -> (N * T, hidden)."""

    def __init__(self, sizes: dict[str, Any]) -> None:
        super().__init__()
        hidden = sizes["hidden"]
        self.word, self.position = Table(sizes["vocabulary"], hidden), Table(sizes["positions"], hidden)
        self.segment, self.norm = Table(2, hidden), layer_norm(sizes)

    def construct(self, ids: Tensor, segments: Tensor) -> Tensor:
        x = self.word(ids) + self.position.weight[: ids.shape[1]] + self.segment(segments)
        return self.norm(ops.reshape(x, (-1, x.shape[2])))


class Words(nn.Cell):
    """States at the masked places (N * M, hidden) -> scores of all words (N * M, vocabulary), by the word embedding."""

    def __init__(self, sizes: dict[str, Any]) -> None:
        super().__init__()
        self.transform = nn.Dense(sizes["hidden"], sizes["hidden"])
        self.norm, self.gelu = layer_norm(sizes), gelu(sizes)
        self.bias = Parameter(Tensor(np.zeros(sizes["vocabulary"], np.float32)))
        self.score = ops.MatMul(transpose_b=True)

    def construct(self, x: Tensor, embedding: Tensor) -> Tensor:
        return ops.bias_add(self.score(self.norm(self.gelu(self.transform(x))), embedding), self.bias)


class Network(nn.Cell):
    """Tokens of two sentences -> scores of the masked words, and of the second being the next (0) or a random one (1)."""

    def __init__(self, sizes: dict[str, Any]) -> None:
        super().__init__()
        self.embeddings = Embeddings(sizes)
        self.names = tuple(f"layer{number}" for number in range(sizes["layers"]))
        for name in self.names:
            self.insert_child_to_cell(name, Layer(sizes))
        self.encoder = tuple(getattr(self, name) for name in self.names)
        self.pooler = nn.Dense(sizes["hidden"], sizes["hidden"])
        self.words = Words(sizes)
        self.next = nn.Dense(sizes["hidden"], 2)
        self.starts = Tensor(np.arange(sizes["batch"], dtype=np.int32) * sizes["length"])

    def construct(self, ids: Tensor, mask: Tensor, segments: Tensor, places: Tensor) -> tuple[Tensor, Tensor]:
        x = self.embeddings(ids, segments)
        masked = masked_scores(mask)
        for layer in self.encoder:
            x = layer(x, masked)
        pooled = ops.tanh(self.pooler(ops.gather(x, self.starts, 0)))
        rows = ops.reshape(places + ops.expand_dims(self.starts, 1), (-1,))
        words = self.words(ops.gather(x, rows, 0), self.embeddings.word.weight)
        return ops.reshape(words, (*places.shape, -1)), self.next(pooled)


class Loss(nn.Cell):
    """Weighted mean over all masked words of the batch, plus the mean over its sentence pairs."""

    def __init__(self) -> None:
        super().__init__()
        self.each = nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="none")

    def construct(self, words: Tensor, following: Tensor, ids: Tensor, weights: Tensor, label: Tensor) -> Tensor:
        surprise = self.each(ops.reshape(words, (-1, words.shape[2])), ops.reshape(ids, (-1,)))
        weights = ops.reshape(weights, (-1,))
        return ops.sum(surprise * weights) / (ops.sum(weights) + 1e-5) + ops.mean(self.each(following, label))


INPUTS = ("input_ids", "input_mask", "segment_ids", "masked_lm_positions")
TARGETS = ("masked_lm_ids", "masked_lm_weights", "next_sentence_label")
OUTPUTS = ("words", "next")


def build(sizes: dict[str, Any]) -> nn.Cell:
    """Return the network; its weights are loaded later."""
    return Network(sizes)


def variables(network: nn.Cell) -> dict[str, Parameter]:
    """Map canonical names to parameters."""
    return layers.named_by_cell(network)


def loss() -> nn.Cell:
    """Return the loss as a cell over outputs and targets."""
    return Loss()
