"""Inception v3 in JAX: functions over named tensors, images (N, H, W, C)."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp

from steelyard_worker.frameworks.jax import blocks
from steelyard_worker.frameworks.jax.layers import Layers, cross_entropy
from steelyard_worker.frameworks.jax.pooling import average_pool, max_pool

if TYPE_CHECKING:
    from collections.abc import Mapping

conv_block = partial(blocks.conv_block, epsilon=1e-3)
branch = partial(blocks.branch, epsilon=1e-3)
# (stride, padding)
ONE, SAME3, SAME5, HALVE = (1, 0), (1, 1), (1, 2), (2, 0)
WIDE, TALL = (1, (0, 3)), (1, (3, 0))


def forward(layers: Layers, sizes: dict[str, Any], batch: Mapping[str, jax.Array]) -> dict[str, jax.Array]:
    """Run the network: image (N, H, W, C) -> logits (N, classes), and those of the auxiliary head if there is one."""
    x = conv_block(layers, "conv2", conv_block(layers, "conv1", batch["image"], *HALVE))
    x = max_pool(conv_block(layers, "conv3", x, *SAME3), 3, 2)
    x = max_pool(conv_block(layers, "conv5", conv_block(layers, "conv4", x)), 3, 2)
    for name, kind in FIRST.items():
        x = layers.block(partial(kind, name=name), x)
    outputs = {"aux": _head(layers, "aux", x)} if sizes["aux"] else {}
    for name, kind in LAST.items():
        x = layers.block(partial(kind, name=name), x)
    return {"logits": layers.dense("head", layers.dropout(jnp.mean(x, axis=(1, 2)), 0.5)), **outputs}


def _a(layers: Layers, x: jax.Array, name: str) -> jax.Array:
    return _side_by_side(
        branch(layers, f"{name}.branch1", x, ONE),
        branch(layers, f"{name}.branch2", x, ONE, SAME5),
        branch(layers, f"{name}.branch3", x, ONE, SAME3, SAME3),
        branch(layers, f"{name}.branch4", average_pool(x, 3, 1, 1), ONE),
    )


def _b(layers: Layers, x: jax.Array, name: str) -> jax.Array:
    return _side_by_side(
        branch(layers, f"{name}.branch1", x, HALVE),
        branch(layers, f"{name}.branch2", x, ONE, SAME3, HALVE),
        max_pool(x, 3, 2),
    )


def _c(layers: Layers, x: jax.Array, name: str) -> jax.Array:
    return _side_by_side(
        branch(layers, f"{name}.branch1", x, ONE),
        branch(layers, f"{name}.branch2", x, ONE, WIDE, TALL),
        branch(layers, f"{name}.branch3", x, ONE, TALL, WIDE, TALL, WIDE),
        branch(layers, f"{name}.branch4", average_pool(x, 3, 1, 1), ONE),
    )


def _d(layers: Layers, x: jax.Array, name: str) -> jax.Array:
    return _side_by_side(
        branch(layers, f"{name}.branch1", x, ONE, HALVE),
        branch(layers, f"{name}.branch2", x, ONE, WIDE, TALL, HALVE),
        max_pool(x, 3, 2),
    )


def _e(layers: Layers, x: jax.Array, name: str) -> jax.Array:
    return _side_by_side(
        branch(layers, f"{name}.branch1", x, ONE),
        *_split(layers, f"{name}.branch2", x, ONE),
        *_split(layers, f"{name}.branch3", x, ONE, SAME3),
        branch(layers, f"{name}.branch4", average_pool(x, 3, 1, 1), ONE),
    )


def _split(layers: Layers, name: str, x: jax.Array, *steps: tuple[int, int]) -> tuple[jax.Array, jax.Array]:
    """A branch that ends in a 1x3 and a 3x1 block."""
    x = branch(layers, name, x, *steps)
    return conv_block(layers, f"{name}.wide", x, 1, (0, 1)), conv_block(layers, f"{name}.tall", x, 1, (1, 0))


def _side_by_side(*parts: jax.Array) -> jax.Array:
    return jnp.concatenate(parts, axis=-1)


# The blocks before and after the place of the auxiliary head.
FIRST = {"a1": _a, "a2": _a, "a3": _a, "b": _b, "c1": _c, "c2": _c, "c3": _c, "c4": _c}
LAST = {"d": _d, "e1": _e, "e2": _e}


def _head(layers: Layers, name: str, x: jax.Array) -> jax.Array:
    """Auxiliary head: 5x5 average pool at stride 3, 1x1 and 5x5 block, global average, dense layer."""
    x = branch(layers, name, average_pool(x, 5, 3), ONE, ONE)
    return layers.dense(f"{name}.head", jnp.mean(x, axis=(1, 2)))


def loss(outputs: Mapping[str, jax.Array], batch: Mapping[str, jax.Array]) -> jax.Array:
    """Mean softmax cross-entropy from logits; the auxiliary head adds 0.4 times its own."""
    each = {name: cross_entropy(logits, batch["label"]) for name, logits in outputs.items()}
    return each["logits"] + 0.4 * each["aux"] if "aux" in each else each["logits"]
