"""Two-dimensional convolution, in the formulations between which the knob `convolution` chooses."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import lax

LAYOUTS = ("NHWC", "HWIO", "NHWC")

Pair = tuple[int, int]


def pair(extent: int | Pair) -> Pair:
    """Return (rows, columns) where one number stands for both."""
    return (extent, extent) if isinstance(extent, int) else extent


def convolve(formulation: str, x: jax.Array, kernel: jax.Array, stride: int | Pair, padding: int | Pair) -> jax.Array:
    """Cross-correlate (N, H, W, C) with (K, K', C, O), with the same zero padding at both ends of an axis."""
    strides, edges = pair(stride), pair(padding)
    if formulation == "matmul" or (formulation == "auto" and _left_to_loops(x, kernel, strides, edges)):
        return by_matmul(x, kernel, strides, edges)
    sides = [(edge, edge) for edge in edges]
    return lax.conv_general_dilated(x, kernel, strides, sides, dimension_numbers=LAYOUTS)


def _left_to_loops(x: jax.Array, kernel: jax.Array, strides: Pair, edges: Pair) -> bool:
    """Return whether XLA's CPU compiler runs this convolution, or its gradient, in generic loops.

    Its simplifier swaps image and kernel if the kernel has at least as many pixels. The swapped form has a reversed window,
    which the fast (Eigen) path does not support. The gradient convolves the output's gradient, dilated by the stride.
    """
    if jax.default_backend() != "cpu":
        return False
    image, dilated, window = 1, 1, 1
    for extent, size, stride, edge in zip(x.shape[1:3], kernel.shape[:2], strides, edges, strict=True):
        image *= extent
        dilated *= (_extent(extent + 2 * edge, size, stride) - 1) * stride + 1
        window *= size
    return window > 1 and min(image, dilated) <= window


def by_matmul(x: jax.Array, kernel: jax.Array, strides: Pair, edges: Pair) -> jax.Array:
    """Gather every output pixel's patch (im2col), then one matrix product."""
    rows, columns, channels, out = kernel.shape
    x = jnp.pad(x, ((0, 0), *((edge, edge) for edge in edges), (0, 0)))
    patches = jnp.concatenate(shifted(x, (rows, columns), strides), axis=-1)
    return patches @ kernel.reshape(rows * columns * channels, out)


def shifted(x: jax.Array, window: int | Pair, stride: int | Pair) -> list[jax.Array]:
    """Return the pixels (N, H', W', C) under each position of the window, in row order."""
    (rows, columns), (down, right) = pair(window), pair(stride)
    n, height, width, channels = x.shape
    tall, wide = (_extent(height, rows, down) - 1) * down + 1, (_extent(width, columns, right) - 1) * right + 1
    return [
        lax.slice(x, (0, i, j, 0), (n, i + tall, j + wide, channels), (1, down, right, 1))
        for i in range(rows)
        for j in range(columns)
    ]


def _extent(padded: int, window: int, stride: int) -> int:
    return (padded - window) // stride + 1
