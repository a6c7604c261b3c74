"""GNMT v2 in PyTorch: `nn.LSTM` layers over time-major sequences, attention over the whole target at once."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from steelyard_worker.frameworks.pytorch.recurrent import Bidirectional, Lstm, named_by_module_and_direction
from steelyard_worker.probes import probe

PAD, SMOOTHING = 0, 0.1


class Attention(nn.Module):
    """Queries (T, N, H), keys (S, N, H), lengths (N,) -> contexts (T, N, H), by normalised Bahdanau scores."""

    def __init__(self, hidden: int) -> None:
        super().__init__()
        self.query, self.key = nn.Linear(hidden, hidden, bias=False), nn.Linear(hidden, hidden, bias=False)
        self.b, self.v, self.g = (nn.Parameter(torch.zeros(size)) for size in (hidden, hidden, 1))

    def forward(self, queries: Tensor, keys: Tensor, lengths: Tensor) -> Tensor:
        values = keys.transpose(0, 1)
        query, key = self.query(queries).transpose(0, 1), self.key(values)
        direction = self.v * (self.g / torch.linalg.vector_norm(self.v))
        scores = torch.tanh(query[:, :, None] + (key + self.b)[:, None]) @ direction
        beyond = torch.arange(len(keys), device=keys.device) >= lengths[:, None]
        weights = F.softmax(scores.masked_fill(beyond[:, None], -1e9), dim=-1)
        return (weights @ values).transpose(0, 1)


class Network(nn.Module):
    """Source (N, S), its lengths (N,), target (N, T) -> logits (N, T - 1, vocabulary) of the target's next words."""

    def __init__(self, sizes: dict[str, Any]) -> None:
        super().__init__()
        hidden = sizes["hidden"]
        self.embedding = nn.Embedding(sizes["vocabulary"], hidden)
        inner = [Lstm(2 * hidden if number == 1 else hidden, hidden) for number in range(1, sizes["layers"])]
        self.encoder = _layers(Bidirectional(hidden, hidden), *inner)
        upper = [Lstm(2 * hidden, hidden) for _ in range(1, sizes["layers"])]
        self.decoder = _layers(Lstm(hidden, hidden), *upper)
        self.attention = Attention(hidden)
        self.classifier = nn.Linear(hidden, sizes["vocabulary"])

    def forward(self, source: Tensor, source_length: Tensor, target: Tensor) -> dict[str, Tensor]:
        # The LSTM kernel needs time first; transposing the indices is cheaper than transposing the embedded vectors.
        keys = self._encode(self.embedding(source.t()), source_length)
        first, *rest = self.decoder.children()
        x = probe("decoded0", first(self.embedding(target[:, :-1].t())))
        context = probe("context", self.attention(x, keys, source_length))
        for number, lstm in enumerate(rest, 1):
            y = lstm(torch.cat((x, context), dim=2))
            x = probe(f"decoded{number}", x + y if number > 1 else y)
        return {"logits": self.classifier(x.transpose(0, 1))}

    def _encode(self, x: Tensor, lengths: Tensor) -> Tensor:
        first, *rest = self.encoder.children()
        x = probe("encoded0", torch.cat(first(x, lengths), dim=2))
        for number, lstm in enumerate(rest, 1):
            y = lstm(x)
            x = probe(f"encoded{number}", x + y if number > 1 else y)
        return x


def _layers(*modules: nn.Module) -> nn.ModuleDict:
    return nn.ModuleDict({f"layer{number}": module for number, module in enumerate(modules)})


INPUTS = ("source", "source_length", "target")


def build(sizes: dict[str, Any]) -> nn.Module:
    """Return the network; its weights are loaded later."""
    return Network(sizes)


def variables(network: nn.Module) -> dict[str, Tensor]:
    """Map canonical names to parameters."""
    return named_by_module_and_direction(network)


def loss(outputs: dict[str, Tensor], batch: dict[str, Tensor]) -> Tensor:
    """Cross-entropy with smoothed labels, summed over all words except padding, divided by the number of sentences."""
    labels = batch["target"][:, 1:]
    summed = F.cross_entropy(
        outputs["logits"].flatten(0, 1), labels.flatten(), ignore_index=PAD, reduction="sum", label_smoothing=SMOOTHING
    )
    return summed / len(labels)
