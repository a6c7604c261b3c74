"""Two-dimensional convolution, in the formulations between which the knob `convolution` chooses."""

from __future__ import annotations

import tensorflow as tf

Pair = tuple[int, int]


def pair(extent: int | Pair) -> Pair:
    """Return (rows, columns); a single number stands for both."""
    return (extent, extent) if isinstance(extent, int) else extent


def convolve(formulation: str, x: tf.Tensor, weight: tf.Variable, stride: int | Pair, padding: int | Pair) -> tf.Tensor:
    """Cross-correlate (N, H, W, C) with (K, K', C, O) -> (N, H', W', O), with equal zero padding at both ends of an axis."""
    strides, edges = pair(stride), pair(padding)
    if formulation == "matmul" or (formulation == "xla" and _left_to_loops(x, weight, strides, edges)):
        return by_matmul(x, weight, strides, edges)
    # At stride 1 "SAME" pads an odd kernel symmetrically; at stride 2 it pads the end only (P-09). The operator never gets
    # padding lists, because with those its gradients do not use oneDNN on CPU and a step takes several times as long.
    if strides == (1, 1) and tuple(weight.shape[:2]) == tuple(2 * edge + 1 for edge in edges):
        return tf.nn.conv2d(x, weight, 1, "SAME")
    return tf.nn.conv2d(_padded(x, edges), weight, strides, "VALID")


def by_matmul(x: tf.Tensor, weight: tf.Variable, strides: Pair, edges: Pair) -> tf.Tensor:
    """Gather the patch of every output pixel (im2col), then compute one matrix product; shapes as of `convolve`."""
    high, wide, channels, out = weight.shape
    seen = shifted(_padded(x, edges), (high, wide), strides)
    patches = tf.reshape(tf.concat(seen, axis=3), (-1, high * wide * channels))
    pixels = tf.matmul(patches, tf.reshape(weight, (high * wide * channels, out)))
    return tf.reshape(pixels, (x.shape[0], *seen[0].shape[1:3], out))


def shifted(x: tf.Tensor, window: int | Pair, stride: int | Pair) -> list[tf.Tensor]:
    """Return the pixels (N, H', W', C) under each position of the window, in row order."""
    (high, wide), (down, right) = pair(window), pair(stride)
    rows, columns = _extent(x.shape[1], high, down), _extent(x.shape[2], wide, right)
    return [
        x[:, i : i + (rows - 1) * down + 1 : down, j : j + (columns - 1) * right + 1 : right]
        for i in range(high)
        for j in range(wide)
    ]


def _left_to_loops(x: tf.Tensor, weight: tf.Variable, strides: Pair, edges: Pair) -> bool:
    """Return whether XLA's CPU compiler runs this convolution, or its gradient, in generic loops, a hundred times slower.

    It uses the fast path only if the image, or the output's gradient dilated by the stride, is larger than the kernel.
    """
    image, dilated, window = 1, 1, 1
    for extent, size, stride, edge in zip(x.shape[1:3], weight.shape[:2], strides, edges, strict=True):
        image *= extent
        dilated *= (_extent(extent + 2 * edge, size, stride) - 1) * stride + 1
        window *= size
    return window > 1 and min(image, dilated) <= window


def _padded(x: tf.Tensor, edges: Pair) -> tf.Tensor:
    return tf.pad(x, ((0, 0), *((edge, edge) for edge in edges), (0, 0))) if any(edges) else x


def _extent(padded: int, window: int, stride: int) -> int:
    return (padded - window) // stride + 1
