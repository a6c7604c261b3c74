"""The network in JAX."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from steelyard_worker.frameworks.jax.layers import Layers, cross_entropy


def forward(layers: Layers, sizes: dict[str, Any], batch: dict[str, jax.Array]) -> dict[str, jax.Array]:
    """Tokens (N, T) -> logits (N, vocabulary)."""
    del sizes
    table = layers.weight("table.weight")
    x = jnp.tanh(layers.dense("mix", table[batch["tokens"]].mean(1)))
    return {"logits": x @ table.T}


def loss(outputs: dict[str, jax.Array], batch: dict[str, jax.Array]) -> jax.Array:
    """Mean softmax cross-entropy from logits."""
    return cross_entropy(outputs["logits"], batch["label"])
