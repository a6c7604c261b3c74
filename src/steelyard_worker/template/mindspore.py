"""The network in MindSpore: cells named as the canonical tensors are."""

from __future__ import annotations

from typing import Any

from mindspore import Parameter, Tensor, nn, ops

from steelyard_worker.frameworks.mindspore import layers


class Network(nn.Cell):
    """Images (N, C, H, W) -> logits (N, classes)."""

    def __init__(self, sizes: dict[str, Any]) -> None:
        super().__init__()
        self.flatten = nn.Flatten()
        self.first = nn.Dense(sizes["channels"] * sizes["image"] ** 2, sizes["hidden"])
        self.head = nn.Dense(sizes["hidden"], sizes["classes"])

    def construct(self, image: Tensor) -> tuple[Tensor]:
        return (self.head(ops.relu(self.first(self.flatten(image)))),)


# What the network takes, what the loss takes besides the outputs, and what the outputs are called.
INPUTS, TARGETS, OUTPUTS = ("image",), ("label",), ("logits",)


def build(sizes: dict[str, Any]) -> nn.Cell:
    """Return the network with whatever weights MindSpore gives it."""
    return Network(sizes)


def variables(network: nn.Cell) -> dict[str, Parameter]:
    """Map canonical names to parameters."""
    return layers.named_by_cell(network)


def loss() -> nn.Cell:
    """Mean softmax cross-entropy from logits."""
    return layers.CrossEntropy()
