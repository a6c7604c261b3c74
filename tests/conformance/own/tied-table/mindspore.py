"""The network in MindSpore: two cells share one parameter."""

from __future__ import annotations

from typing import Any

from mindspore import Parameter, Tensor, nn, ops

from steelyard_worker.frameworks.mindspore import layers


class Network(nn.Cell):
    """Tokens (N, T) -> logits (N, vocabulary)."""

    def __init__(self, sizes: dict[str, Any]) -> None:
        super().__init__()
        self.table = nn.Embedding(sizes["vocabulary"], sizes["width"])
        self.mix = nn.Dense(sizes["width"], sizes["width"])
        self.out = nn.Dense(sizes["width"], sizes["vocabulary"], has_bias=False)
        self.out.weight = self.table.embedding_table

    def construct(self, tokens: Tensor) -> tuple[Tensor]:
        return (self.out(ops.tanh(self.mix(self.table(tokens).mean(1)))),)


INPUTS, TARGETS, OUTPUTS = ("tokens",), ("label",), ("logits",)


def build(sizes: dict[str, Any]) -> nn.Cell:
    """Return the network; its weights are loaded later."""
    return Network(sizes)


def variables(network: nn.Cell) -> dict[str, Parameter]:
    """Map canonical names to parameters."""
    found = layers.named_by_cell(network)
    found["table.weight"] = found.pop("table.embedding_table")
    return found


def loss() -> nn.Cell:
    """Mean softmax cross-entropy from logits."""
    return layers.CrossEntropy()
