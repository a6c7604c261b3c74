"""A small vision transformer in JAX: functions over named tensors; images are (N, H, W, C), dense kernels (in, out)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp

from steelyard_worker.frameworks.jax.layers import Layers, cross_entropy
from steelyard_worker.probes import probe

if TYPE_CHECKING:
    from collections.abc import Mapping


def forward(layers: Layers, sizes: dict[str, Any], batch: Mapping[str, jax.Array]) -> dict[str, jax.Array]:
    """Images (N, H, W, C) -> logits (N, classes)."""
    x = probe("patch", layers.dense("patch", patches(batch["image"], sizes["patch"])))
    token = jnp.broadcast_to(layers.weight("token"), (len(x), 1, sizes["width"]))
    x = jnp.concatenate((token, x), axis=1) + layers.weight("position")
    for number in range(sizes["blocks"]):
        x = probe(f"block{number}", block(layers, f"block{number}", x, sizes["heads"]))
    return {"logits": layers.dense("head", norm(layers, "norm", x[:, 0]))}


def patches(image: jax.Array, size: int) -> jax.Array:
    """(N, H, W, C) -> (N, patches, C * size * size), each patch flattened as channel, row, column."""
    count, height, width, channels = image.shape
    cut = image.reshape(count, height // size, size, width // size, size, channels)
    return cut.transpose(0, 1, 3, 5, 2, 4).reshape(count, -1, channels * size**2)


def block(layers: Layers, name: str, x: jax.Array, heads: int) -> jax.Array:
    """Pre-norm attention and perceptron over (N, T, width)."""
    normed = norm(layers, f"{name}.norm1", x)
    shape = (*x.shape[:2], heads, x.shape[2] // heads)
    query, key, value = (layers.dense(f"{name}.{part}", normed).reshape(shape) for part in ("query", "key", "value"))
    scores = jnp.einsum("nqhd,nkhd->nhqk", query, key) / shape[3] ** 0.5
    context = jnp.einsum("nhqk,nkhd->nqhd", jax.nn.softmax(scores), value).reshape(x.shape)
    x = x + layers.dense(f"{name}.out", context)
    up = jax.nn.gelu(layers.dense(f"{name}.up", norm(layers, f"{name}.norm2", x)), approximate=False)
    return x + layers.dense(f"{name}.down", up)


def norm(layers: Layers, name: str, x: jax.Array) -> jax.Array:
    """Layer norm over the last axis."""
    centred = x - x.mean(-1, keepdims=True)
    scale = jax.lax.rsqrt(jnp.square(centred).mean(-1, keepdims=True) + 1e-6)
    return centred * scale * layers.weight(f"{name}.gamma") + layers.weight(f"{name}.beta")


def loss(outputs: Mapping[str, jax.Array], batch: Mapping[str, jax.Array]) -> jax.Array:
    """Mean softmax cross-entropy from logits."""
    return cross_entropy(outputs["logits"], batch["label"])
