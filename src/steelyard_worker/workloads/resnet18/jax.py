"""ResNet-18 in JAX: functions over named tensors, images (N, H, W, C)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp

from steelyard_worker.frameworks.jax.layers import Layers, cross_entropy, max_pool

if TYPE_CHECKING:
    from collections.abc import Mapping


def forward(layers: Layers, sizes: dict[str, Any], batch: Mapping[str, jax.Array]) -> dict[str, jax.Array]:
    """The whole network: image (N, H, W, C) -> logits (N, classes)."""
    width = sizes["width"]
    x = _stem(layers, sizes["stem"], batch["image"])
    channels = width
    for stage in range(1, 5):
        out = width * 2 ** (stage - 1)
        for block in range(2):
            x = _block(layers, f"stage{stage}.block{block}", x, channels, out, 2 if stage > 1 and block == 0 else 1)
            channels = out
    return {"logits": layers.dense("head", jnp.mean(x, axis=(1, 2)))}


def _stem(layers: Layers, stem: str, image: jax.Array) -> jax.Array:
    large = stem == "imagenet"
    x = layers.conv("stem.conv", image, stride=2 if large else 1, padding=3 if large else 1)
    x = jax.nn.relu(layers.batch_norm("stem.bn", x, epsilon=1e-5, momentum=0.1))
    if stem == "cifar":
        return x
    return max_pool(x, window=3, stride=2, padding=1) if large else max_pool(x, window=2, stride=2, padding=0)


def _block(layers: Layers, name: str, x: jax.Array, channels: int, out: int, stride: int) -> jax.Array:
    """Basic block: two 3x3 convolutions, and a projected shortcut where the shape changes."""
    y = layers.conv(f"{name}.conv1", x, stride=stride, padding=1)
    y = jax.nn.relu(layers.batch_norm(f"{name}.bn1", y, epsilon=1e-5, momentum=0.1))
    y = layers.conv(f"{name}.conv2", y, stride=1, padding=1)
    y = layers.batch_norm(f"{name}.bn2", y, epsilon=1e-5, momentum=0.1)
    if stride != 1 or channels != out:
        x = layers.conv(f"{name}.shortcut.conv", x, stride=stride, padding=0)
        x = layers.batch_norm(f"{name}.shortcut.bn", x, epsilon=1e-5, momentum=0.1)
    return jax.nn.relu(y + x)


def loss(outputs: Mapping[str, jax.Array], batch: Mapping[str, jax.Array]) -> jax.Array:
    """Mean softmax cross-entropy from logits."""
    return cross_entropy(outputs["logits"], batch["label"])
