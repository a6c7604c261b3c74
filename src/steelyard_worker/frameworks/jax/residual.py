"""Parts of residual networks: convolutions with batch norm, stems, shortcuts, head; images are (N, H, W, C)."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import jax
import jax.numpy as jnp

from steelyard_worker.frameworks.jax.pooling import max_pool
from steelyard_worker.probes import probe

if TYPE_CHECKING:
    from steelyard_worker.frameworks.jax.layers import Layers


def body(layers: Layers, frozen: bool) -> Layers:
    """Return the layers of everything except the head; if `frozen`, batch norm normalises by its running statistics."""
    return replace(layers, training=False) if frozen else layers


def conv_norm(layers: Layers, conv: str, norm: str, x: jax.Array, kernel: int, stride: int = 1) -> jax.Array:
    """Bias-free convolution padded by half its kernel, then batch norm, with the given names."""
    x = layers.conv(conv, x, stride=stride, padding=kernel // 2)
    return layers.batch_norm(norm, x, epsilon=1e-5, momentum=0.1)


def stem(layers: Layers, kind: str, image: jax.Array) -> jax.Array:
    """The stem named `seed`, `cifar` or `imagenet`."""
    large = kind == "imagenet"
    x = jax.nn.relu(conv_norm(layers, "stem.conv", "stem.bn", image, 7 if large else 3, 2 if large else 1))
    if kind != "cifar":
        x = max_pool(x, window=3, stride=2, padding=1) if large else max_pool(x, window=2, stride=2, padding=0)
    return probe("stem", x)


def shortcut(layers: Layers, name: str, x: jax.Array, out: int, stride: int) -> jax.Array:
    """The shortcut of a block: the identity, or a projection where its shape changes."""
    if stride == 1 and x.shape[-1] == out:
        return x
    return conv_norm(layers, f"{name}.shortcut.conv", f"{name}.shortcut.bn", x, 1, stride)


def head(layers: Layers, x: jax.Array) -> dict[str, jax.Array]:
    """Global mean and dense layer."""
    return {"logits": layers.dense("head", jnp.mean(x, axis=(1, 2)))}
