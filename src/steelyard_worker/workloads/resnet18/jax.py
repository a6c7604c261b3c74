"""ResNet-18 in JAX: functions over named tensors, images (N, H, W, C)."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import jax

from steelyard_worker.frameworks.jax.layers import Layers, cross_entropy
from steelyard_worker.frameworks.jax.residual import conv_norm, head, shortcut, stem
from steelyard_worker.probes import probe

if TYPE_CHECKING:
    from collections.abc import Mapping


def forward(layers: Layers, sizes: dict[str, Any], batch: Mapping[str, jax.Array]) -> dict[str, jax.Array]:
    """Run the network: image (N, H, W, C) -> logits (N, classes)."""
    x = stem(layers, sizes["stem"], batch["image"])
    for stage in range(4):
        for block in range(2):
            out, stride = sizes["width"] * 2**stage, 2 if stage and not block else 1
            name = f"stage{stage + 1}.block{block}"
            x = layers.block(partial(_block, name=name, out=out, stride=stride), x)
    return head(layers, x)


def _block(layers: Layers, x: jax.Array, name: str, out: int, stride: int) -> jax.Array:
    """Basic block: two 3x3 convolutions, and a projected shortcut where the shape changes."""
    y = jax.nn.relu(conv_norm(layers, f"{name}.conv1", f"{name}.bn1", x, 3, stride))
    y = conv_norm(layers, f"{name}.conv2", f"{name}.bn2", y, 3)
    x = shortcut(layers, name, x, out, stride)
    return probe(name, jax.nn.relu(y + x))


def loss(outputs: Mapping[str, jax.Array], batch: Mapping[str, jax.Array]) -> jax.Array:
    """Mean softmax cross-entropy from logits."""
    return cross_entropy(outputs["logits"], batch["label"])
