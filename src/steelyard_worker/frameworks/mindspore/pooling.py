"""Pooling of images (N, C, H, W): maximum rounded up or down, average that counts its padding."""

from __future__ import annotations

from mindspore import Tensor, nn, ops


class MaxPool(nn.Cell):
    """Maximum of every window, padded with minus infinity; `ceil` rounds the extent up instead of down.

    "same" is used where it pads equally, as in all networks here: "pad" runs the operator for three dimensions, which takes up
    to a fifth more time. Operators that also return the positions of the maxima take thirty times as long.
    """

    def __init__(self, window: int, stride: int, padding: int = 0, *, ceil: bool = False) -> None:
        super().__init__()
        self.window, self.stride, self.padding, self.ceil = window, stride, padding, ceil
        self.same = nn.MaxPool2d(window, stride, pad_mode="same")
        self.valid = nn.MaxPool2d(window, stride)
        self.padded = nn.MaxPool2d(window, stride, pad_mode="pad", padding=padding, ceil_mode=ceil)

    def construct(self, x: Tensor) -> Tensor:
        before, after = self.wanted(x.shape[2])
        total = max((-(-x.shape[2] // self.stride) - 1) * self.stride + self.window - x.shape[2], 0)
        if x.shape[2] == x.shape[3] and before == total // 2 and after == total - total // 2:
            return self.same(x)
        return self.padded(x) if before + after else self.valid(x)

    def wanted(self, extent: int) -> tuple[int, int]:
        """Return the padding (before, after) of one axis, enlarged for the last window if windows must cover the axis."""
        lacking = -(extent + 2 * self.padding - self.window) % self.stride if self.ceil else 0
        return self.padding, self.padding + lacking


class AveragePool(nn.Cell):
    """Mean of every window, including the zeros of the padding, which "same" does not count in the divisor (P-12)."""

    def __init__(self, window: int, stride: int, padding: int = 0) -> None:
        super().__init__()
        self.average = nn.AvgPool2d(window, stride)
        if padding:
            self.average = nn.AvgPool2d(window, stride, pad_mode="pad", padding=padding, count_include_pad=True)

    def construct(self, x: Tensor) -> Tensor:
        return self.average(x)


class AdaptiveAveragePool(nn.Cell):
    """(N, C, H, W) -> (N, C, out, out); bins overlap if `out` does not divide the extent."""

    def __init__(self, out: int) -> None:
        super().__init__()
        self.out = out

    def construct(self, x: Tensor) -> Tensor:
        return ops.adaptive_avg_pool2d(x, self.out)
