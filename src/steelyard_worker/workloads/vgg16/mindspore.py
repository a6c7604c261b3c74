"""VGG-16 in MindSpore: cells with the canonical names."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

from mindspore import Parameter, Tensor, nn

from steelyard_worker import dropout
from steelyard_worker.frameworks.mindspore import layers

STAGES = ((2, 1), (2, 2), (3, 4), (3, 8), (3, 8))


def stage(channels: int, out: int, count: int, sizes: dict[str, Any], place: int) -> nn.SequentialCell:
    """Return `count` convolutions with their batch norms, ReLUs and dropout, then a 2x2 max pool, of stage `place`."""
    normed = sizes["batch_norm"]
    cells = OrderedDict[str, nn.Cell]()
    for number in range(1, count + 1):
        cells[f"conv{number}"] = nn.Conv2d(channels, out, 3, 1, pad_mode="pad", padding=1, has_bias=not normed)
        if normed:
            # `momentum` is the weight of the old statistic here (P-01).
            cells[f"bn{number}"] = nn.BatchNorm2d(out, eps=1e-5, momentum=0.9)
        cells[f"relu{number}"] = nn.ReLU()
        if sizes.get("conv_dropout") and (rate := dropout.after_convolution(place, number, count)):
            cells[f"dropout{number}"] = layers.dropout(rate)
        channels = out
    cells["pool"] = nn.MaxPool2d(2, 2)
    return nn.SequentialCell(cells)


class Network(nn.Cell):
    """The network: images (N, C, H, W) -> logits (N, classes); a frozen body does not change."""

    def __init__(self, sizes: dict[str, Any]) -> None:
        super().__init__()
        channels, extent = sizes["channels"], sizes["image"]
        for number, (count, factor) in enumerate(STAGES, 1):
            cells = stage(channels, sizes["width"] * factor, count, sizes, number)
            self.insert_child_to_cell(f"stage{number}", cells)
            channels, extent = sizes["width"] * factor, extent // 2
        if sizes["freeze_backbone"]:
            layers.freeze(self)
        self.drops = bool(sizes.get("conv_dropout"))
        if self.drops:
            self.dropout0 = layers.dropout(dropout.OF_FEATURES)
        features, self.hidden = channels * extent * extent, bool(sizes["dense"])
        if self.hidden:
            self.dense1 = nn.Dense(features, sizes["dense"])
            self.dense2 = nn.Dense(sizes["dense"], sizes["dense"])
            self.dropout1, self.dropout2 = layers.dropout(0.5), layers.dropout(0.5)
            features = sizes["dense"]
        self.head = nn.Dense(features, sizes["classes"])
        self.flatten, self.relu = nn.Flatten(), nn.ReLU()

    def construct(self, image: Tensor) -> tuple[Tensor]:
        x = self.flatten(self.stage5(self.stage4(self.stage3(self.stage2(self.stage1(image))))))
        if self.drops:
            x = self.dropout0(x)
        if self.hidden:
            x = self.dropout1(self.relu(self.dense1(x)))
            x = self.dropout2(self.relu(self.dense2(x)))
        return (self.head(x),)


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
