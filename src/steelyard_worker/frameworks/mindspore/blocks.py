"""Blocks of convolutional networks: convolution, batch norm, ReLU, and branches of them. Images are NCHW."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

from mindspore import Tensor, nn, ops

Pair = tuple[int, int]


class ConvBlock(nn.Cell):
    """Convolution without bias -> batch norm -> ReLU; kernel and padding are one number or (rows, columns)."""

    def __init__(
        self,
        channels: int,
        out: int,
        kernel: int | Pair = 1,
        stride: int = 1,
        padding: int | Pair = 0,
        *,
        epsilon: float,
    ) -> None:
        super().__init__()
        rows, columns = (padding, padding) if isinstance(padding, int) else padding
        # The default `pad_mode` is 'same' (P-08); `momentum` is the weight of the old statistic here (P-01).
        self.conv = nn.Conv2d(channels, out, kernel, stride, pad_mode="pad", padding=(rows, rows, columns, columns))
        self.bn = nn.BatchNorm2d(out, eps=epsilon, momentum=0.9)
        self.relu = nn.ReLU()

    def construct(self, x: Tensor) -> Tensor:
        return self.relu(self.bn(self.conv(x)))


def branch(channels: int, *steps: tuple[Any, ...], epsilon: float, pool: nn.Cell | None = None) -> nn.SequentialCell:
    """Blocks in sequence, named step1 and so on, after a pool if one is given; a step is (out, kernel, ...)."""
    found: OrderedDict[str, nn.Cell] = OrderedDict() if pool is None else OrderedDict(pool=pool)
    for number, step in enumerate(steps, 1):
        found[f"step{number}"] = ConvBlock(channels, *step, epsilon=epsilon)
        channels = step[0]
    return nn.SequentialCell(found)


class Parallel(nn.Cell):
    """Two to four branches, named branch1 and so on, concatenated along the channels."""

    def __init__(self, *branches: nn.Cell) -> None:
        super().__init__()
        self.count = len(branches)
        for number in range(1, 5):
            each = branches[number - 1] if number <= self.count else nn.Identity()
            self.insert_child_to_cell(f"branch{number}", each)

    def construct(self, x: Tensor) -> Tensor:
        parts = (self.branch1(x), self.branch2(x))
        if self.count > 2:
            parts = (*parts, self.branch3(x))
        if self.count > 3:
            parts = (*parts, self.branch4(x))
        return ops.concat(parts, 1)
