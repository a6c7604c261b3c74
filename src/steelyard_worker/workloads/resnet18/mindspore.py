"""ResNet-18 in MindSpore: cells with the canonical names."""

from __future__ import annotations

from typing import Any

from mindspore import Parameter, Tensor, nn

from steelyard_worker.frameworks.mindspore import layers
from steelyard_worker.frameworks.mindspore.residual import Classifier, batch_norm, conv, shortcut, stem


class Block(nn.Cell):
    """Basic block: two 3x3 convolutions, and a projected shortcut where the shape changes."""

    def __init__(self, channels: int, out: int, stride: int) -> None:
        super().__init__()
        self.conv1 = conv(channels, out, 3, stride)
        self.bn1 = batch_norm(out)
        self.conv2 = conv(out, out, 3)
        self.bn2 = batch_norm(out)
        self.shortcut = shortcut(channels, out, stride)
        self.relu = nn.ReLU()

    def construct(self, x: Tensor) -> Tensor:
        y = self.relu(self.bn1(self.conv1(x)))
        return self.relu(self.bn2(self.conv2(y)) + self.shortcut(x))


INPUTS, TARGETS, OUTPUTS = ("image",), ("label",), ("logits",)


def build(sizes: dict[str, Any]) -> nn.Cell:
    """Return the network; its weights are loaded later."""
    channels, stages = sizes["width"], []
    for stage in range(4):
        out, blocks = sizes["width"] * 2**stage, []
        for block in range(2):
            blocks.append(Block(channels, out, 2 if stage and not block else 1))
            channels = out
        stages.append(blocks)
    first = stem(sizes["channels"], sizes["width"], sizes["stem"])
    return Classifier(first, stages, nn.Dense(channels, sizes["classes"]))


def variables(network: nn.Cell) -> dict[str, Parameter]:
    """Map canonical names to parameters."""
    return layers.named_by_cell(network)


def loss() -> nn.Cell:
    """Mean softmax cross-entropy from logits."""
    return layers.CrossEntropy()
