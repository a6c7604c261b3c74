"""Parts of residual networks: stems, convolutions, shortcuts, and the classifier around a body of blocks."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import nn
from torch.nn import functional as F

if TYPE_CHECKING:
    from typing import Self

    from torch import Tensor


def conv(channels: int, out: int, kernel: int, stride: int = 1) -> nn.Conv2d:
    """Return a bias-free convolution, padded by half its kernel."""
    return nn.Conv2d(channels, out, kernel, stride, kernel // 2, bias=False)


def batch_norm(channels: int) -> nn.BatchNorm2d:
    """Return the batch norm of residual networks; `momentum` is the weight of the new statistic here (P-01)."""
    return nn.BatchNorm2d(channels, eps=1e-5, momentum=0.1)


def stem(channels: int, width: int, kind: str) -> nn.Sequential:
    """Return the stem named `seed`, `cifar` or `imagenet`."""
    large, found = kind == "imagenet", nn.Sequential()
    found.add_module("conv", conv(channels, width, 7, 2) if large else conv(channels, width, 3))
    found.add_module("bn", batch_norm(width))
    found.add_module("relu", nn.ReLU(inplace=True))
    if kind != "cifar":
        found.add_module("pool", nn.MaxPool2d(3, 2, 1) if large else nn.MaxPool2d(2, 2))
    return found


def shortcut(channels: int, out: int, stride: int) -> nn.Module:
    """Return the shortcut of a block: the identity, or a projection where its shape changes."""
    if stride == 1 and channels == out:
        return nn.Identity()
    found = nn.Sequential()
    found.add_module("conv", conv(channels, out, 1, stride))
    found.add_module("bn", batch_norm(out))
    return found


class Classifier(nn.Module):
    """Stem, four stages of blocks, global mean, dense layer: images (N, C, H, W) -> logits (N, classes).

    `frozen`: only the dense layer is trained, batch norms are in inference mode, and autograd stores nothing for the rest.
    """

    def __init__(self, first: nn.Module, stages: list[list[nn.Module]], head: nn.Linear, frozen: bool = False) -> None:
        super().__init__()
        self.stem = first
        for number, blocks in enumerate(stages, 1):
            stage = nn.Sequential()
            for place, block in enumerate(blocks):
                stage.add_module(f"block{place}", block)
            self.add_module(f"stage{number}", stage)
        self.frozen = frozen
        self.requires_grad_(not frozen)
        self.head = head

    def train(self, mode: bool = True) -> Self:
        """Switch between training and inference; a frozen body stays in inference."""
        super().train(mode and not self.frozen)
        self.training = mode
        return self

    def forward(self, image: Tensor) -> dict[str, Tensor]:
        x = self.stage4(self.stage3(self.stage2(self.stage1(self.stem(image)))))
        return {"logits": self.head(torch.flatten(F.adaptive_avg_pool2d(x, 1), 1))}
