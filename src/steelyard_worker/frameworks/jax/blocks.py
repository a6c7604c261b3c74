"""Blocks of convolutional networks: convolution, batch norm, ReLU, and branches of them. Images are NHWC."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import jax

from steelyard_worker.probes import probe

if TYPE_CHECKING:
    from steelyard_worker.frameworks.jax.convolution import Pair
    from steelyard_worker.frameworks.jax.layers import Layers


def conv_block(
    layers: Layers, name: str, x: jax.Array, stride: int | Pair = 1, padding: int | Pair = 0, *, epsilon: float
) -> jax.Array:
    """Convolution without bias -> batch norm -> ReLU; the weights determine the size of the kernel."""
    x = layers.conv(f"{name}.conv", x, stride=stride, padding=padding)
    return probe(name, jax.nn.relu(layers.batch_norm(f"{name}.bn", x, epsilon=epsilon, momentum=0.1)))


def branch(layers: Layers, name: str, x: jax.Array, *steps: tuple[Any, ...], epsilon: float) -> jax.Array:
    """Blocks in sequence, named step1 and so on; a step is (stride, padding)."""
    for number, step in enumerate(steps, 1):
        x = conv_block(layers, f"{name}.step{number}", x, *step, epsilon=epsilon)
    return x
