"""The network in JAX, which differentiates trained tensors only."""

from __future__ import annotations

from typing import Any

import jax

from steelyard_worker.frameworks.jax.layers import Layers, cross_entropy


def forward(layers: Layers, sizes: dict[str, Any], batch: dict[str, jax.Array]) -> dict[str, jax.Array]:
    """Images (N, H, W, C) -> logits (N, classes)."""
    del sizes
    x = jax.nn.relu(layers.conv("first", batch["image"], 1, 1))
    x = jax.nn.relu(layers.conv("second", x, 1, 1))
    return {"logits": layers.dense("head", x.mean((1, 2)))}


def loss(outputs: dict[str, jax.Array], batch: dict[str, jax.Array]) -> jax.Array:
    """Mean softmax cross-entropy from logits."""
    return cross_entropy(outputs["logits"], batch["label"])
