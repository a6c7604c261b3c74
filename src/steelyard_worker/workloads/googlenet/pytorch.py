"""GoogLeNet in PyTorch: `torch.nn` modules with the canonical names."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from steelyard_worker.frameworks.pytorch import layers
from steelyard_worker.frameworks.pytorch.blocks import ConvBlock, branch

EPSILON = 1e-3
# name: channels of 1x1; 1x1, 3x3; 1x1, 3x3 (or 5x5); after the pool, at width 64
INCEPTIONS = {
    "inception3a": (64, 96, 128, 16, 32, 32),
    "inception3b": (128, 128, 192, 32, 96, 64),
    "inception4a": (192, 96, 208, 16, 48, 64),
    "inception4b": (160, 112, 224, 24, 64, 64),
    "inception4c": (128, 128, 256, 24, 64, 64),
    "inception4d": (112, 144, 288, 32, 64, 64),
    "inception4e": (256, 160, 320, 32, 128, 128),
    "inception5a": (256, 160, 320, 32, 128, 128),
    "inception5b": (384, 192, 384, 48, 128, 128),
}


class Inception(nn.Module):
    """Four branches concatenated along the channels."""

    def __init__(self, channels: int, counts: list[int], five_by_five: bool) -> None:
        super().__init__()
        one, reduce3, three, reduce5, five, pool = counts
        last = (five, 5, 1, 2) if five_by_five else (five, 3, 1, 1)
        self.branch1 = branch(channels, (one,), epsilon=EPSILON)
        self.branch2 = branch(channels, (reduce3,), (three, 3, 1, 1), epsilon=EPSILON)
        self.branch3 = branch(channels, (reduce5,), last, epsilon=EPSILON)
        self.branch4 = branch(channels, (pool,), epsilon=EPSILON, pool=nn.MaxPool2d(3, 1, 1))

    def forward(self, x: Tensor) -> Tensor:
        return torch.cat((self.branch1(x), self.branch2(x), self.branch3(x), self.branch4(x)), 1)


class Head(nn.Module):
    """Auxiliary head: average pool to 4x4, 1x1 block, two dense layers."""

    def __init__(self, channels: int, width: int, classes: int) -> None:
        super().__init__()
        self.reduce = ConvBlock(channels, 2 * width, epsilon=EPSILON)
        self.hidden = nn.Linear(2 * width * 16, 16 * width)
        self.head, self.dropout = nn.Linear(16 * width, classes), layers.dropout(0.7)

    def forward(self, x: Tensor) -> Tensor:
        x = self.reduce(F.adaptive_avg_pool2d(x, 4))
        return self.head(self.dropout(F.relu(self.hidden(torch.flatten(x, 1)))))


class Network(nn.Module):
    """The network: images (N, C, H, W) -> logits (N, classes), and those of the auxiliary heads if there are any."""

    def __init__(self, sizes: dict[str, Any]) -> None:
        super().__init__()
        width = sizes["width"]
        self.conv1 = ConvBlock(sizes["channels"], width, 7, 2, 3, epsilon=EPSILON)
        self.conv2 = ConvBlock(width, width, epsilon=EPSILON)
        self.conv3 = ConvBlock(width, 3 * width, 3, 1, 1, epsilon=EPSILON)
        channels, self.aux = 3 * width, sizes["aux"]
        for name, counts in INCEPTIONS.items():
            scaled = [count * width // 64 for count in counts]
            self.add_module(name, Inception(channels, scaled, sizes["five_by_five"]))
            channels = scaled[0] + scaled[2] + scaled[4] + scaled[5]
            if self.aux and name in ("inception4a", "inception4d"):
                self.add_module("aux1" if name == "inception4a" else "aux2", Head(channels, width, sizes["classes"]))
        self.pool3, self.pool2 = nn.MaxPool2d(3, 2, ceil_mode=True), nn.MaxPool2d(2, 2, ceil_mode=True)
        self.head = nn.Linear(channels, sizes["classes"])
        self.dropout = layers.dropout(0.2)

    def forward(self, image: Tensor) -> dict[str, Tensor]:
        x = self.pool3(self.conv3(self.conv2(self.pool3(self.conv1(image)))))
        x = a = self.inception4a(self.pool3(self.inception3b(self.inception3a(x))))
        x = d = self.inception4d(self.inception4c(self.inception4b(x)))
        x = self.inception5b(self.inception5a(self.pool2(self.inception4e(x))))
        outputs = {"logits": self.head(self.dropout(torch.flatten(F.adaptive_avg_pool2d(x, 1), 1)))}
        return outputs | {"aux1": self.aux1(a), "aux2": self.aux2(d)} if self.aux else outputs


INPUTS = ("image",)


def build(sizes: dict[str, Any]) -> nn.Module:
    """Return the network; its weights are loaded later."""
    return Network(sizes)


def variables(network: nn.Module) -> dict[str, Tensor]:
    """Map canonical names to parameters and buffers."""
    return layers.named_by_module(network)


def loss(outputs: dict[str, Tensor], batch: dict[str, Tensor]) -> Tensor:
    """Mean softmax cross-entropy from logits; each auxiliary head adds 0.3 times its own."""
    each = {name: F.cross_entropy(logits, batch["label"]) for name, logits in outputs.items()}
    return each["logits"] + 0.3 * (each["aux1"] + each["aux2"]) if "aux1" in each else each["logits"]
