"""Pooling of images (N, H, W, C): maximum rounded up or down, average that counts its padding."""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING

import numpy as np
import tensorflow as tf

from steelyard_worker.frameworks.tensorflow.convolution import shifted

if TYPE_CHECKING:
    from steelyard_worker.frameworks.tensorflow.layers import Variables


class MaxPool:
    """Maximum of every window, padded with minus infinity; `ceil` rounds the extent up instead of down.

    The gradient of XLA's window reduction runs as one serial loop on CPU. Comparing shifted slices, columns first, then rows,
    takes a third to a quarter of that time; without XLA it is many times slower than the library. The first maximum of a tie
    wins.
    """

    def __init__(self, variables: Variables, window: int, stride: int, padding: int = 0, *, ceil: bool = False) -> None:
        self._fuse, self._window, self._stride, self._padding, self._ceil = (
            variables.fuse,
            window,
            stride,
            padding,
            ceil,
        )

    def __call__(self, x: tf.Tensor) -> tf.Tensor:
        edges = [self._edge(extent) for extent in x.shape[1:3]]
        if self._fuse and edges == [self._same(extent) for extent in x.shape[1:3]]:
            return tf.nn.max_pool2d(x, self._window, self._stride, "SAME")
        if any(map(any, edges)):
            x = tf.pad(x, ((0, 0), *edges, (0, 0)), constant_values=x.dtype.min)
        return tf.nn.max_pool2d(x, self._window, self._stride, "VALID") if self._fuse else self._compared(x)

    def _edge(self, extent: int) -> tuple[int, int]:
        """Return the padding (before, after) of one axis, enlarged for the last window if windows must cover the axis."""
        lacking = -(extent + 2 * self._padding - self._window) % self._stride
        return self._padding, self._padding + lacking * self._ceil

    def _same(self, extent: int) -> tuple[int, int]:
        """Return the padding of "SAME" (before, after)."""
        total = max((-(-extent // self._stride) - 1) * self._stride + self._window - extent, 0)
        return total // 2, total - total // 2

    def _compared(self, x: tf.Tensor) -> tf.Tensor:
        for window, stride in (((1, self._window), (1, self._stride)), ((self._window, 1), (self._stride, 1))):
            x = reduce(lambda best, other: tf.where(best >= other, best, other), shifted(x, window, stride))
        return x


class AveragePool:
    """Mean of every window, including the zeros of the padding, which `SAME` does not count in the divisor (P-12).

    With XLA it sums shifted slices, as the maximum does; if the extent does not change, the mean is its own transpose.
    """

    def __init__(self, variables: Variables, window: int, stride: int, padding: int = 0) -> None:
        self._fuse, self._window, self._stride, self._padding = variables.fuse, window, stride, padding
        self._self_adjoint = stride == 1 and window == 2 * padding + 1

    def __call__(self, x: tf.Tensor) -> tf.Tensor:
        if not self._fuse and self._self_adjoint:
            return tf.custom_gradient(lambda x: (self._summed(x), self._summed))(x)
        return (
            self._summed(x)
            if not self._fuse
            else tf.nn.avg_pool2d(self._padded(x), self._window, self._stride, "VALID")
        )

    def _summed(self, x: tf.Tensor) -> tf.Tensor:
        x = self._padded(x)
        for window, stride in (((1, self._window), (1, self._stride)), ((self._window, 1), (self._stride, 1))):
            x = reduce(tf.add, shifted(x, window, stride))
        return x / self._window**2

    def _padded(self, x: tf.Tensor) -> tf.Tensor:
        edge = (self._padding, self._padding)
        return tf.pad(x, ((0, 0), edge, edge, (0, 0))) if self._padding else x


def bins(extent: int, out: int) -> np.ndarray:
    """Return a matrix (out, extent) that averages positions into bins, which overlap if `out` does not divide `extent`."""
    starts = np.arange(out) * extent // out
    ends = -(-np.arange(1, out + 1) * extent // out)
    inside = (starts[:, None] <= np.arange(extent)) & (np.arange(extent) < ends[:, None])
    return inside / inside.sum(1, keepdims=True)


def adaptive_average_pool(x: tf.Tensor, out: int) -> tf.Tensor:
    """(N, H, W, C) -> (N, out, out, C), with the bins of `bins`."""
    rows, columns = (tf.constant(bins(extent, out), x.dtype) for extent in x.shape[1:3])
    return tf.einsum("ph,qw,nhwc->npqc", rows, columns, x)
