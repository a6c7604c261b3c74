"""VGG-16 in JAX: functions over named tensors, images (N, H, W, C)."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import jax

from steelyard_worker import dropout
from steelyard_worker.frameworks.jax.layers import Layers, cross_entropy
from steelyard_worker.frameworks.jax.pooling import max_pool
from steelyard_worker.probes import probe

if TYPE_CHECKING:
    from collections.abc import Mapping

CONVOLUTIONS = (2, 2, 3, 3, 3)


def forward(layers: Layers, sizes: dict[str, Any], batch: Mapping[str, jax.Array]) -> dict[str, jax.Array]:
    """Run the network: image (N, H, W, C) -> logits (N, classes); batch norms of a frozen body are in inference mode."""
    body = replace(layers, training=False) if sizes["freeze_backbone"] else layers
    x = batch["image"]
    for stage, count in enumerate(CONVOLUTIONS, 1):
        x = body.block(partial(_stage, stage=stage, count=count, sizes=sizes), x)
    # The canonical order of the flattened image is channels first (P-17).
    x = x.transpose(0, 3, 1, 2).reshape(x.shape[0], -1)
    x = layers.dropout(x, dropout.OF_FEATURES) if sizes.get("conv_dropout") else x
    for name in ("dense1", "dense2") if sizes["dense"] else ():
        x = layers.dropout(jax.nn.relu(layers.dense(name, x)), 0.5)
    return {"logits": layers.dense("head", x)}


def _stage(layers: Layers, x: jax.Array, stage: int, count: int, sizes: dict[str, Any]) -> jax.Array:
    """Several layers with dropout between them, if they have it, then a 2x2 max pool."""
    name = f"stage{stage}"
    for number in range(1, count + 1):
        x = _layer(layers, name, number, x, sizes["batch_norm"])
        if sizes.get("conv_dropout") and (rate := dropout.after_convolution(stage, number, count)):
            x = layers.dropout(x, rate)
    return probe(name, max_pool(x, window=2, stride=2, padding=0))


def _layer(layers: Layers, stage: str, number: int, x: jax.Array, normed: bool) -> jax.Array:
    """3x3 convolution with bias, or with batch norm instead of the bias, then ReLU."""
    x = layers.conv(f"{stage}.conv{number}", x, stride=1, padding=1, bias=not normed)
    if normed:
        x = layers.batch_norm(f"{stage}.bn{number}", x, epsilon=1e-5, momentum=0.1)
    return jax.nn.relu(x)


def loss(outputs: Mapping[str, jax.Array], batch: Mapping[str, jax.Array]) -> jax.Array:
    """Mean softmax cross-entropy from logits."""
    return cross_entropy(outputs["logits"], batch["label"])
