"""The network in MindSpore; nothing is frozen here, because network.py says what is."""

from __future__ import annotations

from typing import Any

from mindspore import Parameter, Tensor, nn, ops

from steelyard_worker.frameworks.mindspore import layers


class Network(nn.Cell):
    """Images (N, C, H, W) -> logits (N, classes)."""

    def __init__(self, sizes: dict[str, Any]) -> None:
        super().__init__()
        channels = sizes["channels"]
        self.first = nn.Conv2d(3, channels, 3, pad_mode="pad", padding=1, has_bias=False)
        self.second = nn.Conv2d(channels, channels, 3, pad_mode="pad", padding=1, has_bias=False)
        self.head = nn.Dense(channels, sizes["classes"])

    def construct(self, image: Tensor) -> tuple[Tensor]:
        x = ops.relu(self.second(ops.relu(self.first(image))))
        return (self.head(x.mean((2, 3))),)


INPUTS, TARGETS, OUTPUTS = ("image",), ("label",), ("logits",)


def build(sizes: dict[str, Any]) -> nn.Cell:
    """Return the network; its weights are loaded later."""
    return Network(sizes)


def variables(network: nn.Cell) -> dict[str, Parameter]:
    """Map canonical names to parameters."""
    return layers.named_by_cell(network)


def loss() -> nn.Cell:
    """Mean softmax cross-entropy from logits."""
    return layers.CrossEntropy()
