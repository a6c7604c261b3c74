"""GNMT v2 in MindSpore: `nn.LSTM` layers over time-major sequences, attention over the whole target at once."""

from __future__ import annotations

import re
from typing import Any

from mindspore import Parameter, Tensor, nn, ops

from steelyard_worker.frameworks.mindspore.activations import tanh
from steelyard_worker.frameworks.mindspore.recurrent import Bidirectional, Lstm, named_by_cell_and_direction
from steelyard_worker.probes import probe

PAD, SMOOTHING = 0, 0.1


class Attention(nn.Cell):
    """Queries (T, N, H), keys (S, N, H), lengths (N,) -> contexts (T, N, H), by normalised Bahdanau scores."""

    def __init__(self, hidden: int) -> None:
        super().__init__()
        self.query, self.key = (nn.Dense(hidden, hidden, has_bias=False) for _ in range(2))
        self.b, self.v, self.g = (Parameter(ops.zeros(size)) for size in (hidden, hidden, 1))

    def construct(self, queries: Tensor, keys: Tensor, lengths: Tensor) -> Tensor:
        values = ops.transpose(keys, (1, 0, 2))
        query, key = ops.transpose(self.query(queries), (1, 0, 2)), self.key(values) + self.b
        direction = self.v * (self.g / ops.sqrt(ops.sum(self.v * self.v)))
        sums = ops.expand_dims(query, 2) + ops.expand_dims(key, 1)
        batch, steps, length, hidden = sums.shape
        scores = ops.matmul(tanh(sums).reshape(-1, hidden), direction.reshape(hidden, 1)).reshape(batch, steps, length)
        beyond = ops.arange(length).reshape(1, 1, -1) >= lengths.reshape(-1, 1, 1)
        weights = ops.softmax(ops.masked_fill(scores, beyond, -1e9), -1)
        return ops.transpose(ops.matmul(weights, values), (1, 0, 2))


class Network(nn.Cell):
    """Source (N, S), its lengths (N,), target (N, T) -> logits (N, T - 1, vocabulary) of the target's next words."""

    def __init__(self, sizes: dict[str, Any]) -> None:
        super().__init__()
        vocabulary, hidden, layers = sizes["vocabulary"], sizes["hidden"], sizes["layers"]
        self.embedding = nn.Embedding(vocabulary, hidden)
        inner = [Lstm(2 * hidden if number == 1 else hidden, hidden) for number in range(1, layers)]
        self.encoder = nn.CellList([Bidirectional(hidden, hidden), *inner])
        self.decoder = nn.CellList([Lstm(hidden, hidden), *(Lstm(2 * hidden, hidden) for _ in range(1, layers))])
        self.attention = Attention(hidden)
        self.classifier = nn.Dense(hidden, vocabulary)
        self.layers = layers

    def construct(self, source: Tensor, source_length: Tensor, target: Tensor) -> tuple[Tensor]:
        # The LSTM kernel needs time first; transposing the indices is cheaper than transposing the embedded vectors.
        x = ops.concat(self.encoder[0](self.embedding(ops.transpose(source, (1, 0))), source_length), 2)
        x = probe("encoded0", x)
        for number in range(1, self.layers):
            y = self.encoder[number](x)
            x = probe(f"encoded{number}", x + y if number > 1 else y)
        keys, x = x, self.decoder[0](self.embedding(ops.transpose(target[:, :-1], (1, 0))))
        context = probe("context", self.attention(probe("decoded0", x), keys, source_length))
        for number in range(1, self.layers):
            y = self.decoder[number](ops.concat((x, context), 2))
            x = probe(f"decoded{number}", x + y if number > 1 else y)
        return (self.classifier(ops.transpose(x, (1, 0, 2))),)


class Loss(nn.Cell):
    """Cross-entropy with smoothed labels, summed over all words except padding, divided by the number of sentences."""

    def __init__(self) -> None:
        super().__init__()
        self.each = nn.SoftmaxCrossEntropyWithLogits(sparse=False, reduction="none")

    def construct(self, logits: Tensor, target: Tensor) -> Tensor:
        labels = target[:, 1:].reshape(-1)
        vocabulary = logits.shape[2]
        rest = SMOOTHING / vocabulary
        smoothed = ops.one_hot(
            labels, vocabulary, Tensor(1 - SMOOTHING + rest, logits.dtype), Tensor(rest, logits.dtype)
        )
        each = self.each(logits.reshape(-1, vocabulary), smoothed)
        return ops.sum(each * ops.cast(labels != PAD, logits.dtype)) / logits.shape[0]


INPUTS, TARGETS, OUTPUTS = ("source", "source_length", "target"), ("target",), ("logits",)


def build(sizes: dict[str, Any]) -> nn.Cell:
    """Return the network; its weights are loaded later."""
    return Network(sizes)


def variables(network: nn.Cell) -> dict[str, Parameter]:
    """Map canonical names to parameters."""
    named = named_by_cell_and_direction(network)
    found = {re.sub(r"^(encoder|decoder)\.(\d)", r"\1.layer\2", name): parameter for name, parameter in named.items()}
    return {
        name.replace("embedding.embedding_table", "embedding.weight"): parameter for name, parameter in found.items()
    }


def loss() -> nn.Cell:
    """Cross-entropy with smoothed labels, summed over all words except padding, divided by the number of sentences."""
    return Loss()
