"""The network in JAX: functions over named tensors; images are (N, H, W, C), dense kernels (in, out)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import jax

from steelyard_worker.frameworks.jax.layers import Layers, cross_entropy

if TYPE_CHECKING:
    from collections.abc import Mapping


def forward(layers: Layers, sizes: dict[str, Any], batch: Mapping[str, jax.Array]) -> dict[str, jax.Array]:
    """Images (N, H, W, C) -> logits (N, classes)."""
    del sizes
    image = batch["image"].transpose(0, 3, 1, 2)  # flattened in the canonical order: channel, row, column
    hidden = jax.nn.relu(layers.dense("first", image.reshape(image.shape[0], -1)))
    return {"logits": layers.dense("head", hidden)}


def loss(outputs: Mapping[str, jax.Array], batch: Mapping[str, jax.Array]) -> jax.Array:
    """Mean softmax cross-entropy from logits."""
    return cross_entropy(outputs["logits"], batch["label"])
