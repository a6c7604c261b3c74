"""VGG-16 in PyTorch: `torch.nn` modules with the canonical names."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from steelyard_worker import dropout
from steelyard_worker.frameworks.pytorch import layers

if TYPE_CHECKING:
    from typing import Self

STAGES = ((2, 1), (2, 2), (3, 4), (3, 8), (3, 8))


def stage(channels: int, out: int, count: int, sizes: dict[str, Any], place: int) -> nn.Sequential:
    """Return `count` convolutions with their batch norms, ReLUs and dropout, then a 2x2 max pool, of stage `place`."""
    normed = sizes["batch_norm"]
    found = nn.Sequential()
    for number in range(1, count + 1):
        found.add_module(f"conv{number}", nn.Conv2d(channels, out, 3, 1, 1, bias=not normed))
        if normed:
            found.add_module(f"bn{number}", nn.BatchNorm2d(out, eps=1e-5, momentum=0.1))
        found.add_module(f"relu{number}", nn.ReLU(inplace=True))
        if sizes.get("conv_dropout") and (rate := dropout.after_convolution(place, number, count)):
            found.add_module(f"dropout{number}", layers.dropout(rate))
        channels = out
    found.add_module("pool", nn.MaxPool2d(2, 2))
    return found


class Network(nn.Module):
    """The network: images (N, C, H, W) -> logits (N, classes).

    A frozen body does not change, and its batch norms are in inference mode; autograd then stores nothing for it.
    """

    def __init__(self, sizes: dict[str, Any]) -> None:
        super().__init__()
        channels, extent, self.frozen = sizes["channels"], sizes["image"], sizes["freeze_backbone"]
        for number, (count, factor) in enumerate(STAGES, 1):
            self.add_module(f"stage{number}", stage(channels, sizes["width"] * factor, count, sizes, number))
            channels, extent = sizes["width"] * factor, extent // 2
        self.requires_grad_(not self.frozen)
        self.dropout0 = layers.dropout(dropout.OF_FEATURES) if sizes.get("conv_dropout") else None
        features, self.hidden = channels * extent * extent, bool(sizes["dense"])
        if self.hidden:
            self.dense1 = nn.Linear(features, sizes["dense"])
            self.dense2 = nn.Linear(sizes["dense"], sizes["dense"])
            self.dropout1, self.dropout2 = layers.dropout(0.5), layers.dropout(0.5)
            features = sizes["dense"]
        self.head = nn.Linear(features, sizes["classes"])

    def train(self, mode: bool = True) -> Self:
        """Switch between training and inference; a frozen body stays in inference."""
        super().train(mode and not self.frozen)
        self.training = mode
        return self

    def forward(self, image: Tensor) -> dict[str, Tensor]:
        x = self.stage5(self.stage4(self.stage3(self.stage2(self.stage1(image)))))
        x = torch.flatten(x, 1)
        x = self.dropout0(x) if self.dropout0 is not None else x
        if self.hidden:
            x = self.dropout1(F.relu(self.dense1(x)))
            x = self.dropout2(F.relu(self.dense2(x)))
        return {"logits": self.head(x)}


INPUTS = ("image",)


def build(sizes: dict[str, Any]) -> nn.Module:
    """Return the network; its weights are loaded later."""
    return Network(sizes)


def variables(network: nn.Module) -> dict[str, Tensor]:
    """Map canonical names to parameters and buffers."""
    return layers.named_by_module(network)


def loss(outputs: dict[str, Tensor], batch: dict[str, Tensor]) -> Tensor:
    """Mean softmax cross-entropy from logits."""
    return F.cross_entropy(outputs["logits"], batch["label"])
