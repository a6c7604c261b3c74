"""Tensors with given gradients in JAX; the kernel is (in, out)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import jax.numpy as jnp

if TYPE_CHECKING:
    from collections.abc import Mapping

    import jax

    from steelyard_worker.frameworks.jax.layers import Layers

NAMES = {
    "bias": "kernel.bias",
    "gamma": "norm.gamma",
    "beta": "norm.beta",
    "fixed": "fixed.weight",
}


def forward(layers: Layers, sizes: dict[str, Any], batch: Mapping[str, jax.Array]) -> dict[str, jax.Array]:
    """Gradients of all tensors, (1, ...) each -> the loss (1,)."""
    del sizes
    found = jnp.sum(layers.weight("kernel.weight").T * batch["weight"])
    for name, tensor in NAMES.items():
        found += jnp.sum(layers.weight(tensor) * batch[name])
    found += jnp.sum(layers.weight("table.weight")[batch["rows"]] * batch["table"])
    return {"total": found[None]}


def loss(outputs: Mapping[str, jax.Array], batch: Mapping[str, jax.Array]) -> jax.Array:
    """The sum."""
    del batch
    return jnp.mean(outputs["total"])
