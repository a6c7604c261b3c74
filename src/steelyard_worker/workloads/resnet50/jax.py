"""ResNet-50 in JAX: functions over named tensors, images (N, H, W, C)."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import jax

from steelyard_worker.frameworks.jax.layers import Layers, cross_entropy
from steelyard_worker.frameworks.jax.residual import body, conv_norm, head, shortcut, stem
from steelyard_worker.probes import probe

if TYPE_CHECKING:
    from collections.abc import Mapping


def forward(layers: Layers, sizes: dict[str, Any], batch: Mapping[str, jax.Array]) -> dict[str, jax.Array]:
    """Run the network: image (N, H, W, C) -> logits (N, classes)."""
    inner = body(layers, sizes["freeze_backbone"])
    x = stem(inner, "imagenet", batch["image"])
    for stage, count in enumerate(sizes["blocks"]):
        for block in range(count):
            stride = 2 if stage and not block else 1
            strides = (stride, 1) if sizes["variant"] == "v1" else (1, stride)
            name, out = f"stage{stage + 1}.block{block}", 4 * sizes["width"] * 2**stage
            x = inner.block(partial(_block, name=name, out=out, strides=strides), x)
    return head(layers, x)


def _block(layers: Layers, x: jax.Array, name: str, out: int, strides: tuple[int, int]) -> jax.Array:
    """Bottleneck: 1x1, 3x3 and 1x1 convolution, and a projected shortcut where the shape changes."""
    first, second = strides
    y = jax.nn.relu(conv_norm(layers, f"{name}.conv1", f"{name}.bn1", x, 1, first))
    y = jax.nn.relu(conv_norm(layers, f"{name}.conv2", f"{name}.bn2", y, 3, second))
    y = conv_norm(layers, f"{name}.conv3", f"{name}.bn3", y, 1)
    return probe(name, jax.nn.relu(y + shortcut(layers, name, x, out, first * second)))


def loss(outputs: Mapping[str, jax.Array], batch: Mapping[str, jax.Array]) -> jax.Array:
    """Mean softmax cross-entropy from logits."""
    return cross_entropy(outputs["logits"], batch["label"])
