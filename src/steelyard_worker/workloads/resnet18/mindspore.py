"""ResNet-18 in MindSpore: cells named as the canonical tensors are."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

from mindspore import Parameter, Tensor, nn, ops

from steelyard_worker.frameworks.mindspore import layers


def conv(channels: int, out: int, kernel: int, stride: int, padding: int) -> nn.Conv2d:
    """Return a convolution padded alike on all sides; the default `pad_mode` would be 'same' (P-08)."""
    return nn.Conv2d(channels, out, kernel, stride, pad_mode="pad", padding=padding, has_bias=False)


def batch_norm(channels: int) -> nn.BatchNorm2d:
    """Return a batch norm; `momentum` is the weight of the old statistic here (P-01), the variance is unbiased (P-03)."""
    return nn.BatchNorm2d(channels, eps=1e-5, momentum=0.9)


class Block(nn.Cell):
    """Basic block: two 3x3 convolutions, and a projected shortcut where the shape changes."""

    def __init__(self, channels: int, out: int, stride: int) -> None:
        super().__init__()
        self.conv1 = conv(channels, out, 3, stride, 1)
        self.bn1 = batch_norm(out)
        self.conv2 = conv(out, out, 3, 1, 1)
        self.bn2 = batch_norm(out)
        self.shortcut = nn.Identity()
        if stride != 1 or channels != out:
            self.shortcut = nn.SequentialCell(
                OrderedDict(conv=conv(channels, out, 1, stride, 0), bn=batch_norm(out))
            )
        self.relu = nn.ReLU()

    def construct(self, x: Tensor) -> Tensor:
        y = self.relu(self.bn1(self.conv1(x)))
        return self.relu(self.bn2(self.conv2(y)) + self.shortcut(x))


class Network(nn.Cell):
    """The whole network: images (N, C, H, W) -> logits (N, classes)."""

    def __init__(self, sizes: dict[str, Any]) -> None:
        super().__init__()
        width, stem = sizes["width"], sizes["stem"]
        large = stem == "imagenet"
        cells = OrderedDict(
            conv=conv(sizes["channels"], width, 7 if large else 3, 2 if large else 1, 3 if large else 1),
            bn=batch_norm(width),
            relu=nn.ReLU(),
        )
        if stem != "cifar":
            cells["pool"] = nn.MaxPool2d(3, 2, pad_mode="pad", padding=1) if large else nn.MaxPool2d(2, 2)
        self.stem = nn.SequentialCell(cells)
        channels = width
        for stage in range(1, 5):
            out, blocks = width * 2 ** (stage - 1), OrderedDict()
            for block in range(2):
                blocks[f"block{block}"] = Block(channels, out, 2 if stage > 1 and block == 0 else 1)
                channels = out
            self.insert_child_to_cell(f"stage{stage}", nn.SequentialCell(blocks))
        self.head = nn.Dense(channels, sizes["classes"])

    def construct(self, image: Tensor) -> tuple[Tensor]:
        x = self.stage4(self.stage3(self.stage2(self.stage1(self.stem(image)))))
        return (self.head(ops.mean(x, (2, 3))),)


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
