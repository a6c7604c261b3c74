"""Multi-head self-attention, layer norm and GELU over named tensors."""

from __future__ import annotations

from typing import TYPE_CHECKING

import jax
import jax.numpy as jnp
from jax import lax

from steelyard_worker.probes import probe

if TYPE_CHECKING:
    from steelyard_worker.frameworks.jax.layers import Layers

MASKED = -1e9


def self_attention(layers: Layers, name: str, x: jax.Array, keep: jax.Array, heads: int) -> jax.Array:
    """(N, T, width) and keep (N, 1, 1, T), true where a key counts -> (N, T, width), without the output projection.

    The formula of `jax.nn.dot_product_attention`, which itself computes the softmax in float32 even in a float64 run.
    """
    width = x.shape[-1] // heads

    def project(part: str) -> jax.Array:
        return layers.dense(f"{name}.{part}", x).reshape(*x.shape[:2], heads, width)

    scores = jnp.einsum("nqhd,nkhd->nhqk", project("query") * width**-0.5, project("key"))
    shares = jax.nn.softmax(jnp.where(keep, scores, MASKED))
    return jnp.einsum("nhqk,nkhd->nqhd", shares, project("value")).reshape(x.shape)


def layer_norm(layers: Layers, name: str, x: jax.Array, epsilon: float) -> jax.Array:
    """Normalise the last axis with the biased variance, from the differences to the mean (P-07)."""
    centred = x - jnp.mean(x, axis=-1, keepdims=True)
    inverse = lax.rsqrt(jnp.mean(jnp.square(centred), axis=-1, keepdims=True) + epsilon)
    return probe(name, centred * inverse * layers.weight(f"{name}.gamma") + layers.weight(f"{name}.beta"))
