"""A small GPT in JAX: functions over named tensors; dense kernels are (in, out)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp

from steelyard_worker.frameworks.jax.layers import Layers, cross_entropy
from steelyard_worker.probes import probe

if TYPE_CHECKING:
    from collections.abc import Mapping


def forward(layers: Layers, sizes: dict[str, Any], batch: Mapping[str, jax.Array]) -> dict[str, jax.Array]:
    """Tokens (N, T) -> logits (N, T, vocabulary)."""
    x = layers.weight("token")[batch["tokens"]] + layers.weight("position")
    for number in range(sizes["blocks"]):
        x = probe(f"block{number}", block(layers, f"block{number}", x, sizes["heads"]))
    return {"logits": norm(layers, "norm", x) @ layers.weight("head.weight")}


def block(layers: Layers, name: str, x: jax.Array, heads: int) -> jax.Array:
    """Causal pre-norm attention and perceptron over (N, T, width)."""
    normed = norm(layers, f"{name}.norm1", x)
    shape = (*x.shape[:2], heads, x.shape[2] // heads)
    query, key, value = (layers.dense(f"{name}.{part}", normed).reshape(shape) for part in ("query", "key", "value"))
    scores = jnp.einsum("nqhd,nkhd->nhqk", query, key) / shape[3] ** 0.5
    # P-58: written out, because `jax.nn.dot_product_attention` computes its softmax in float32 also where all else is float64.
    seen = jnp.tril(jnp.ones(scores.shape[-2:], bool))
    shares = jax.nn.softmax(jnp.where(seen, scores, -jnp.inf))
    context = jnp.einsum("nhqk,nkhd->nqhd", shares, value).reshape(x.shape)
    x = x + layers.dense(f"{name}.out", context)
    up = jax.nn.gelu(layers.dense(f"{name}.up", norm(layers, f"{name}.norm2", x)), approximate=True)
    return x + layers.dense(f"{name}.down", up)


def norm(layers: Layers, name: str, x: jax.Array) -> jax.Array:
    """Layer norm over the last axis."""
    centred = x - x.mean(-1, keepdims=True)
    scale = jax.lax.rsqrt(jnp.square(centred).mean(-1, keepdims=True) + 1e-5)
    return centred * scale * layers.weight(f"{name}.gamma") + layers.weight(f"{name}.beta")


def loss(outputs: Mapping[str, jax.Array], batch: Mapping[str, jax.Array]) -> jax.Array:
    """Mean softmax cross-entropy over all tokens."""
    logits = outputs["logits"]
    return cross_entropy(logits.reshape(-1, logits.shape[-1]), batch["targets"].reshape(-1))
