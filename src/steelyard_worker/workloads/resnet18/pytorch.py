"""ResNet-18 in PyTorch: `torch.nn` modules named as the canonical tensors are."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from steelyard_worker.frameworks.pytorch import layers


class Block(nn.Module):
    """Basic block: two 3x3 convolutions, and a projected shortcut where the shape changes."""

    def __init__(self, channels: int, out: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(channels, out, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(out, eps=1e-5, momentum=0.1)
        self.conv2 = nn.Conv2d(out, out, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(out, eps=1e-5, momentum=0.1)
        self.shortcut = nn.Identity()
        if stride != 1 or channels != out:
            self.shortcut = nn.Sequential()
            self.shortcut.add_module("conv", nn.Conv2d(channels, out, 1, stride, bias=False))
            self.shortcut.add_module("bn", nn.BatchNorm2d(out, eps=1e-5, momentum=0.1))
        self.relu = nn.ReLU(inplace=True)

    def forward(self, x: Tensor) -> Tensor:
        y = self.relu(self.bn1(self.conv1(x)))
        return self.relu(self.bn2(self.conv2(y)) + self.shortcut(x))


class Network(nn.Module):
    """The whole network: images (N, C, H, W) -> logits (N, classes)."""

    def __init__(self, sizes: dict[str, Any]) -> None:
        super().__init__()
        width, stem = sizes["width"], sizes["stem"]
        self.stem = nn.Sequential()
        large = stem == "imagenet"
        conv = nn.Conv2d(sizes["channels"], width, 7 if large else 3, 2 if large else 1, 3 if large else 1, bias=False)
        self.stem.add_module("conv", conv)
        self.stem.add_module("bn", nn.BatchNorm2d(width, eps=1e-5, momentum=0.1))
        self.stem.add_module("relu", nn.ReLU(inplace=True))
        if stem != "cifar":
            self.stem.add_module("pool", nn.MaxPool2d(3, 2, 1) if large else nn.MaxPool2d(2, 2))
        channels = width
        for stage in range(1, 5):
            out, blocks = width * 2 ** (stage - 1), nn.Sequential()
            for block in range(2):
                blocks.add_module(f"block{block}", Block(channels, out, 2 if stage > 1 and block == 0 else 1))
                channels = out
            self.add_module(f"stage{stage}", blocks)
        self.head = nn.Linear(channels, sizes["classes"])

    def forward(self, image: Tensor) -> dict[str, Tensor]:
        x = self.stage4(self.stage3(self.stage2(self.stage1(self.stem(image)))))
        return {"logits": self.head(torch.flatten(F.adaptive_avg_pool2d(x, 1), 1))}


INPUTS = ("image",)


def build(sizes: dict[str, Any]) -> nn.Module:
    """Return the network with whatever weights PyTorch gives it."""
    return Network(sizes)


def variables(network: nn.Module) -> dict[str, Tensor]:
    """Map canonical names to parameters and buffers."""
    return layers.named_by_module(network)


def loss(outputs: dict[str, Tensor], batch: dict[str, Tensor]) -> Tensor:
    """Mean softmax cross-entropy from logits."""
    return F.cross_entropy(outputs["logits"], batch["label"])
