"""LSTM sentiment in JAX: a scan over time around an LSTM cell with one bias (P-21)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp

from steelyard_worker.frameworks.jax.layers import Layers, cross_entropy

if TYPE_CHECKING:
    from collections.abc import Mapping


def forward(layers: Layers, sizes: dict[str, Any], batch: Mapping[str, jax.Array]) -> dict[str, jax.Array]:
    """Word indices (N, T) -> logits (N, classes)."""
    steps = layers.weight("embedding.weight")[batch["tokens"].T]  # (T, N, width): a scan runs over the first axis
    for layer in range(sizes["layers"]):
        halves = [layers.recur(f"lstm.layer{layer}.forward", lstm_cell, steps, backward=False)]
        if sizes["bidirectional"]:
            halves.append(layers.recur(f"lstm.layer{layer}.backward", lstm_cell, steps, backward=True))
        steps = jnp.concatenate(halves, axis=-1)
    read = jnp.concatenate((steps[0], steps[-1]), axis=-1) if sizes["readout"] == "first+last" else steps[-1]
    return {"logits": layers.dense("head", read)}


def lstm_cell(z: jax.Array, c: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Gates z (N, 4H) and cell state (N, H) -> (hidden state, cell state)."""
    i, f, g, o = jnp.split(z, 4, axis=-1)
    c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
    return jax.nn.sigmoid(o) * jnp.tanh(c), c


def loss(outputs: Mapping[str, jax.Array], batch: Mapping[str, jax.Array]) -> jax.Array:
    """Mean softmax cross-entropy from logits."""
    return cross_entropy(outputs["logits"], batch["label"])
