"""Two-dimensional convolution, in the formulations that the knob `convolution` chooses between."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import lax

LAYOUTS = ("NHWC", "HWIO", "NHWC")


def convolve(formulation: str, x: jax.Array, kernel: jax.Array, stride: int, padding: int) -> jax.Array:
    """Cross-correlate (N, H, W, C) with (K, K, C, O), zero padding on every side."""
    if formulation == "matmul" or (formulation == "auto" and _left_to_loops(x, kernel, stride, padding)):
        return by_matmul(x, kernel, stride, padding)
    sides = ((padding, padding), (padding, padding))
    return lax.conv_general_dilated(x, kernel, (stride, stride), sides, dimension_numbers=LAYOUTS)


def _left_to_loops(x: jax.Array, kernel: jax.Array, stride: int, padding: int) -> bool:
    """Whether XLA's CPU compiler leaves this convolution, or its gradient, to generic loops.

    Its simplifier swaps image and kernel where the kernel has more pixels; the swapped form has a reversed window,
    which the fast (Eigen) path does not take. The gradient convolves the output's gradient, dilated by the stride.
    """
    if jax.default_backend() != "cpu":
        return False
    extent = min(x.shape[1], (_extent(x.shape[1] + 2 * padding, kernel.shape[0], stride) - 1) * stride + 1)
    return kernel.shape[0] > 1 and extent <= kernel.shape[0]


def by_matmul(x: jax.Array, kernel: jax.Array, stride: int, padding: int) -> jax.Array:
    """Gather every output pixel's patch (im2col), then one matrix product."""
    size, _, channels, out = kernel.shape
    x = jnp.pad(x, ((0, 0), (padding, padding), (padding, padding), (0, 0)))
    patches = jnp.concatenate(shifted(x, size, stride), axis=-1)
    return patches @ kernel.reshape(size * size * channels, out)


def shifted(x: jax.Array, window: int, stride: int) -> list[jax.Array]:
    """Return, for every place in the window in row order, the pixels (N, H', W', C) that it sees."""
    n, height, width, channels = x.shape
    rows, columns = _extent(height, window, stride), _extent(width, window, stride)
    return [
        lax.slice(
            x,
            (0, i, j, 0),
            (n, i + (rows - 1) * stride + 1, j + (columns - 1) * stride + 1, channels),
            (1, stride, stride, 1),
        )
        for i in range(window)
        for j in range(window)
    ]


def _extent(padded: int, window: int, stride: int) -> int:
    return (padded - window) // stride + 1
