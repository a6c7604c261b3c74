"""GNMT v2 in JAX: scans over time-major sequences, attention over the whole target at once."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp

from steelyard_worker.frameworks.jax.recurrent import bidirectional, lstm
from steelyard_worker.probes import probe

if TYPE_CHECKING:
    from collections.abc import Mapping

    from steelyard_worker.frameworks.jax.layers import Layers

PAD, SMOOTHING = 0, 0.1


def forward(layers: Layers, sizes: dict[str, Any], batch: Mapping[str, jax.Array]) -> dict[str, jax.Array]:
    """Source (N, S), its lengths (N,), target (N, T) -> logits (N, T - 1, vocabulary) of the target's next words."""
    embedding, lengths = layers.weight("embedding.weight"), batch["source_length"]
    x = layers.block(partial(_both, name="encoder.layer0"), embedding[batch["source"].T], lengths)
    x = probe("encoded0", x)
    for number in range(1, sizes["layers"]):
        y = layers.block(partial(lstm, name=f"encoder.layer{number}"), x)
        x = probe(f"encoded{number}", x + y if number > 1 else y)
    keys = x
    x = layers.block(partial(lstm, name="decoder.layer0"), embedding[batch["target"][:, :-1].T])
    context = probe("context", attend(layers, "attention", probe("decoded0", x), keys, lengths))
    for number in range(1, sizes["layers"]):
        y = layers.block(partial(lstm, name=f"decoder.layer{number}"), jnp.concatenate((x, context), axis=-1))
        x = probe(f"decoded{number}", x + y if number > 1 else y)
    return {"logits": layers.dense("classifier", jnp.swapaxes(x, 0, 1))}


def _both(layers: Layers, steps: jax.Array, lengths: jax.Array, name: str) -> jax.Array:
    """Both directions, concatenated: (T, N, width), lengths (N,) -> (T, N, 2 * hidden)."""
    return jnp.concatenate(bidirectional(layers, name, steps, lengths), axis=-1)


def attend(layers: Layers, name: str, queries: jax.Array, keys: jax.Array, lengths: jax.Array) -> jax.Array:
    """Queries (T, N, H), keys (S, N, H), lengths (N,) -> contexts (T, N, H), by normalised Bahdanau scores."""
    query = jnp.swapaxes(queries, 0, 1) @ layers.weight(f"{name}.query.weight")
    values = jnp.swapaxes(keys, 0, 1)
    key = values @ layers.weight(f"{name}.key.weight") + layers.weight(f"{name}.b")
    v = layers.weight(f"{name}.v")
    direction = v * (layers.weight(f"{name}.g") / jnp.linalg.norm(v))
    scores = jnp.tanh(query[:, :, None] + key[:, None]) @ direction
    inside = jnp.arange(len(keys)) < lengths[:, None]
    weights = jax.nn.softmax(jnp.where(inside[:, None], scores, -1e9))
    return jnp.swapaxes(weights @ values, 0, 1)


def loss(outputs: Mapping[str, jax.Array], batch: Mapping[str, jax.Array]) -> jax.Array:
    """Cross-entropy with smoothed labels, summed over all words except padding, divided by the number of sentences."""
    logits, labels = outputs["logits"], batch["target"][:, 1:]
    # A one-hot comparison instead of a lookup avoids a scatter in the gradient.
    smoothed = (1 - SMOOTHING) * jax.nn.one_hot(
        labels, logits.shape[-1], dtype=logits.dtype
    ) + SMOOTHING / logits.shape[-1]
    each = -jnp.sum(smoothed * jax.nn.log_softmax(logits), axis=-1)
    return jnp.sum(jnp.where(labels != PAD, each, 0)) / len(labels)
