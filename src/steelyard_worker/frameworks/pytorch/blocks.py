"""Blocks of convolutional networks: convolution, batch norm, ReLU, and branches of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from torch import nn

if TYPE_CHECKING:
    from torch import Tensor


class ConvBlock(nn.Module):
    """Convolution without bias -> batch norm -> ReLU; kernel, stride and padding as `nn.Conv2d` takes them."""

    def __init__(
        self, channels: int, out: int, kernel: Any = 1, stride: Any = 1, padding: Any = 0, *, epsilon: float
    ) -> None:
        super().__init__()
        self.conv = nn.Conv2d(channels, out, kernel, stride, padding, bias=False)
        self.bn = nn.BatchNorm2d(out, eps=epsilon, momentum=0.1)
        self.relu = nn.ReLU(inplace=True)

    def forward(self, x: Tensor) -> Tensor:
        return self.relu(self.bn(self.conv(x)))


def branch(channels: int, *steps: tuple[Any, ...], epsilon: float, pool: nn.Module | None = None) -> nn.Sequential:
    """Blocks in sequence, named step1 and so on, after a pool if one is given; a step is (out, kernel, ...)."""
    found = nn.Sequential()
    if pool is not None:
        found.add_module("pool", pool)
    for number, step in enumerate(steps, 1):
        found.add_module(f"step{number}", ConvBlock(channels, *step, epsilon=epsilon))
        channels = step[0]
    return found
