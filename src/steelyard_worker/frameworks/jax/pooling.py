"""Pooling of images (N, H, W, C): maximum rounded up or down, average that counts its padding.

Both are written with shifted slices, columns first, then rows. XLA's CPU compiler runs the gradient of its own window maximum
(`select_and_scatter`) as one serial loop, four times slower, and slices of the whole window at once are even slower.
"""

from __future__ import annotations

from functools import partial, reduce
from typing import TYPE_CHECKING

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from steelyard_worker.frameworks.jax import convolution

if TYPE_CHECKING:
    from collections.abc import Callable


def max_pool(x: jax.Array, window: int, stride: int, padding: int = 0, *, ceil: bool = False) -> jax.Array:
    """Maximum of each window, padded with minus infinity; the first maximum of a tie takes the gradient.

    `ceil` rounds the extent up instead of down: the last window may reach beyond the image.
    """
    lacking = [-(extent + 2 * padding - window) % stride * ceil for extent in x.shape[1:3]]
    if padding or any(lacking):
        edges = [(padding, padding + more, 0) for more in lacking]
        x = lax.pad(x, jnp.array(-jnp.inf, x.dtype), ((0, 0, 0), *edges, (0, 0, 0)))
    return _both_axes(lambda best, other: jnp.where(best >= other, best, other), x, window, stride)


def average_pool(x: jax.Array, window: int, stride: int, padding: int = 0) -> jax.Array:
    """Mean of each window, including the zeros of the padding (P-12)."""
    if stride == 1 and window == 2 * padding + 1:
        return _same_average(x, window)
    return _average(x, window, stride, padding)


def _average(x: jax.Array, window: int, stride: int, padding: int) -> jax.Array:
    x = jnp.pad(x, ((0, 0), (padding, padding), (padding, padding), (0, 0)))
    return _both_axes(jnp.add, x, window, stride) / window**2


@partial(jax.custom_vjp, nondiff_argnums=(1,))
def _same_average(x: jax.Array, window: int) -> jax.Array:
    """The average that does not change the extent is its own transpose; with that gradient XLA takes half the time."""
    return _average(x, window, 1, window // 2)


_same_average.defvjp(
    lambda x, window: (_same_average(x, window), None), lambda window, _, g: (_same_average(g, window),)
)


def adaptive_average_pool(x: jax.Array, out: int) -> jax.Array:
    """(N, H, W, C) -> (N, out, out, C), with the bins of `bins`."""
    rows, columns = (jnp.asarray(bins(extent, out), x.dtype) for extent in x.shape[1:3])
    return jnp.einsum("ph,qw,nhwc->npqc", rows, columns, x)


def bins(extent: int, out: int) -> np.ndarray:
    """Return a matrix (out, extent) that averages positions into bins, which overlap if `out` does not divide `extent`."""
    starts = np.arange(out) * extent // out
    ends = -(-np.arange(1, out + 1) * extent // out)
    inside = (starts[:, None] <= np.arange(extent)) & (np.arange(extent) < ends[:, None])
    return inside / inside.sum(1, keepdims=True)


def _both_axes(
    combine: Callable[[jax.Array, jax.Array], jax.Array], x: jax.Array, window: int, stride: int
) -> jax.Array:
    x = reduce(combine, convolution.shifted(x, (1, window), (1, stride)))
    return reduce(combine, convolution.shifted(x, (window, 1), (stride, 1)))
