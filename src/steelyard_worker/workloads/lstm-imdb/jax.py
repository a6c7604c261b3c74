"""LSTM sentiment in JAX, with one bias (P-21)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp

from steelyard_worker.frameworks.jax.layers import Layers, cross_entropy
from steelyard_worker.frameworks.jax.recurrent import bidirectional, lstm
from steelyard_worker.probes import probe

if TYPE_CHECKING:
    from collections.abc import Mapping


def forward(layers: Layers, sizes: dict[str, Any], batch: Mapping[str, jax.Array]) -> dict[str, jax.Array]:
    """Word indices (N, T) -> logits (N, classes)."""
    # (T, N, width), because a scan runs over the first axis
    steps = probe("embedding", layers.weight("embedding.weight")[batch["tokens"].T])
    for layer in range(sizes["layers"]):
        name = f"lstm.layer{layer}"
        if sizes["bidirectional"]:
            steps = jnp.concatenate(bidirectional(layers, name, steps), axis=-1)
        else:
            steps = lstm(layers, steps, f"{name}.forward")
    read = jnp.concatenate((steps[0], steps[-1]), axis=-1) if sizes["readout"] == "first+last" else steps[-1]
    return {"logits": layers.dense("head", probe("readout", read))}


def loss(outputs: Mapping[str, jax.Array], batch: Mapping[str, jax.Array]) -> jax.Array:
    """Mean softmax cross-entropy from logits."""
    return cross_entropy(outputs["logits"], batch["label"])
