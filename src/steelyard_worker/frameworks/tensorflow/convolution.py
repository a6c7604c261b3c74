"""Two-dimensional convolution, in the formulations that the knob `convolution` chooses between."""

from __future__ import annotations

import tensorflow as tf


def convolve(formulation: str, x: tf.Tensor, weight: tf.Variable, stride: int, padding: int) -> tf.Tensor:
    """Cross-correlate (N, H, W, C) with (K, K, C, O), zero padding on every side."""
    if formulation == "matmul" or (formulation == "xla" and _left_to_loops(x, weight, stride, padding)):
        return by_matmul(x, weight, stride, padding)
    # At stride 1 "SAME" pads an odd kernel symmetrically; at stride 2 it would pad the end only (P-09). Padding lists are
    # never handed to the operator: on CPU they take its gradients off the oneDNN path, which costs several times the step.
    if stride == 1 and weight.shape[0] == 2 * padding + 1:
        return tf.nn.conv2d(x, weight, 1, "SAME")
    return tf.nn.conv2d(_padded(x, padding), weight, stride, "VALID")


def by_matmul(x: tf.Tensor, weight: tf.Variable, stride: int, padding: int) -> tf.Tensor:
    """Gather every output pixel's patch (im2col), then one matrix product."""
    size, _, channels, out = weight.shape
    x = _padded(x, padding)
    rows, columns = _extent(x.shape[1], size, stride), _extent(x.shape[2], size, stride)
    seen = [
        x[:, i : i + (rows - 1) * stride + 1 : stride, j : j + (columns - 1) * stride + 1 : stride]
        for i in range(size)
        for j in range(size)
    ]
    patches = tf.reshape(tf.concat(seen, axis=3), (-1, size * size * channels))
    pixels = tf.matmul(patches, tf.reshape(weight, (size * size * channels, out)))
    return tf.reshape(pixels, (x.shape[0], rows, columns, out))


def _left_to_loops(x: tf.Tensor, weight: tf.Variable, stride: int, padding: int) -> bool:
    """Whether XLA's CPU compiler leaves this convolution, or its gradient, to loops a hundred times slower.

    It takes the fast path only where the image, or the output's gradient dilated by the stride, is larger than the kernel.
    """
    size, extent = weight.shape[0], x.shape[1]
    dilated = (_extent(extent + 2 * padding, size, stride) - 1) * stride + 1
    return size > 1 and min(extent, dilated) <= size


def _padded(x: tf.Tensor, padding: int) -> tf.Tensor:
    sides = (padding, padding)
    return tf.pad(x, ((0, 0), sides, sides, (0, 0))) if padding else x


def _extent(padded: int, window: int, stride: int) -> int:
    return (padded - window) // stride + 1
