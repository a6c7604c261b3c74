"""GoogLeNet in JAX: functions over named tensors, images (N, H, W, C)."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp

from steelyard_worker.frameworks.jax import blocks
from steelyard_worker.frameworks.jax.layers import Layers, cross_entropy
from steelyard_worker.frameworks.jax.pooling import adaptive_average_pool, max_pool

if TYPE_CHECKING:
    from collections.abc import Mapping

conv_block = partial(blocks.conv_block, epsilon=1e-3)
branch = partial(blocks.branch, epsilon=1e-3)
# (stride, padding)
SAME1, SAME3, SAME5 = (1, 0), (1, 1), (1, 2)


def forward(layers: Layers, sizes: dict[str, Any], batch: Mapping[str, jax.Array]) -> dict[str, jax.Array]:
    """Run the network: image (N, H, W, C) -> logits (N, classes), and those of the auxiliary heads if there are any."""
    x = max_pool(conv_block(layers, "conv1", batch["image"], 2, 3), 3, 2, ceil=True)
    x = conv_block(layers, "conv3", conv_block(layers, "conv2", x), *SAME3)
    x, outputs = max_pool(x, 3, 2, ceil=True), {}
    third = SAME5 if sizes["five_by_five"] else SAME3
    for name in ("3a", "3b", "4a", "4b", "4c", "4d", "4e", "5a", "5b"):
        x = layers.block(partial(_inception, name=f"inception{name}", third=third), x)
        if sizes["aux"] and name in ("4a", "4d"):
            aux = "aux1" if name == "4a" else "aux2"
            outputs[aux] = _head(layers, aux, x)
        if name in ("3b", "4e"):
            x = max_pool(x, 3 if name == "3b" else 2, 2, ceil=True)
    return {"logits": layers.dense("head", layers.dropout(jnp.mean(x, axis=(1, 2)), 0.2)), **outputs}


def _inception(layers: Layers, x: jax.Array, name: str, third: tuple[int, int]) -> jax.Array:
    """Four branches concatenated along the channels."""
    parts = (
        branch(layers, f"{name}.branch1", x, SAME1),
        branch(layers, f"{name}.branch2", x, SAME1, SAME3),
        branch(layers, f"{name}.branch3", x, SAME1, third),
        branch(layers, f"{name}.branch4", max_pool(x, 3, 1, 1), SAME1),
    )
    return jnp.concatenate(parts, axis=-1)


def _head(layers: Layers, name: str, x: jax.Array) -> jax.Array:
    """Auxiliary head: average pool to 4x4, 1x1 block, two dense layers."""
    x = conv_block(layers, f"{name}.reduce", adaptive_average_pool(x, 4))
    flat = jnp.transpose(x, (0, 3, 1, 2)).reshape(x.shape[0], -1)  # the canonical order is C, H, W (P-17)
    return layers.dense(f"{name}.head", layers.dropout(jax.nn.relu(layers.dense(f"{name}.hidden", flat)), 0.7))


def loss(outputs: Mapping[str, jax.Array], batch: Mapping[str, jax.Array]) -> jax.Array:
    """Mean softmax cross-entropy from logits; each auxiliary head adds 0.3 times its own."""
    each = {name: cross_entropy(logits, batch["label"]) for name, logits in outputs.items()}
    return each["logits"] + 0.3 * (each["aux1"] + each["aux2"]) if "aux1" in each else each["logits"]
