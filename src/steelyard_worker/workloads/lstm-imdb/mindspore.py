"""LSTM sentiment in MindSpore: `nn.LSTM` over time-major sequences; gates are i, f, g, o in both (P-20)."""

from __future__ import annotations

from typing import Any

from mindspore import Parameter, Tensor, nn, ops

from steelyard_worker.frameworks.mindspore import layers
from steelyard_worker.frameworks.mindspore.recurrent import Lstm
from steelyard_worker.probes import probe


class Network(nn.Cell):
    """Word indices (N, T) -> logits (N, classes)."""

    def __init__(self, sizes: dict[str, Any]) -> None:
        super().__init__()
        self.embedding = nn.Embedding(sizes["vocabulary"], sizes["embedding"])
        self.lstm = Lstm(sizes["embedding"], sizes["hidden"], sizes["layers"], sizes["bidirectional"])
        self.both_ends = sizes["readout"] == "first+last"
        features = sizes["hidden"] * (2 if sizes["bidirectional"] else 1) * (2 if self.both_ends else 1)
        self.head = nn.Dense(features, sizes["classes"])
        self.embedding.embedding_table.requires_grad = sizes["train_embedding"]

    def construct(self, tokens: Tensor) -> tuple[Tensor]:
        # The LSTM kernel needs time first; transposing the indices is cheaper than transposing the embedded vectors.
        steps = self.lstm(self.embedding(ops.transpose(tokens, (1, 0))))
        read = ops.concat((steps[0], steps[-1]), 1) if self.both_ends else steps[-1]
        return (self.head(probe("readout", read)),)


INPUTS, TARGETS, OUTPUTS = ("tokens",), ("label",), ("logits",)


def build(sizes: dict[str, Any]) -> nn.Cell:
    """Return the network; its weights are loaded later."""
    return Network(sizes)


def variables(network: Network) -> dict[str, Parameter]:
    """Map canonical names to parameters."""
    found = {
        "embedding.weight": network.embedding.embedding_table,
        "head.weight": network.head.weight,
        "head.bias": network.head.bias,
    }
    return found | {f"lstm.{name}": parameter for name, parameter in network.lstm.named().items()}


def loss() -> nn.Cell:
    """Mean softmax cross-entropy from logits."""
    return layers.CrossEntropy()
