"""ResNet-50 in MindSpore: cells with the canonical names."""

from __future__ import annotations

from typing import Any

from mindspore import Parameter, Tensor, nn

from steelyard_worker.frameworks.mindspore import layers
from steelyard_worker.frameworks.mindspore.residual import Classifier, batch_norm, conv, shortcut, stem


class Block(nn.Cell):
    """Bottleneck: 1x1, 3x3 and 1x1 convolution, and a projected shortcut where the shape changes."""

    def __init__(self, channels: int, within: int, first: int, second: int) -> None:
        super().__init__()
        self.conv1 = conv(channels, within, 1, first)
        self.bn1 = batch_norm(within)
        self.conv2 = conv(within, within, 3, second)
        self.bn2 = batch_norm(within)
        self.conv3 = conv(within, 4 * within, 1)
        self.bn3 = batch_norm(4 * within)
        self.shortcut = shortcut(channels, 4 * within, first * second)
        self.relu = nn.ReLU()

    def construct(self, x: Tensor) -> Tensor:
        y = self.relu(self.bn1(self.conv1(x)))
        y = self.relu(self.bn2(self.conv2(y)))
        return self.relu(self.bn3(self.conv3(y)) + self.shortcut(x))


INPUTS, TARGETS, OUTPUTS = ("image",), ("label",), ("logits",)


def build(sizes: dict[str, Any]) -> nn.Cell:
    """Return the network; its weights are loaded later."""
    channels, stages = sizes["width"], []
    for stage, count in enumerate(sizes["blocks"]):
        within, blocks = sizes["width"] * 2**stage, []
        for block in range(count):
            stride = 2 if stage and not block else 1
            first, second = (stride, 1) if sizes["variant"] == "v1" else (1, stride)
            blocks.append(Block(channels, within, first, second))
            channels = 4 * within
        stages.append(blocks)
    head = nn.Dense(channels, sizes["classes"])
    return Classifier(stem(sizes["channels"], sizes["width"], "imagenet"), stages, head, sizes["freeze_backbone"])


def variables(network: nn.Cell) -> dict[str, Parameter]:
    """Map canonical names to parameters."""
    return layers.named_by_cell(network)


def loss() -> nn.Cell:
    """Mean softmax cross-entropy from logits."""
    return layers.CrossEntropy()
