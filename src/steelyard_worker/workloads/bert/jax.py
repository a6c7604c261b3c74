"""BERT in JAX: functions over named tensors, states (N, T, hidden)."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp

from steelyard_worker.frameworks.jax.attention import layer_norm, self_attention
from steelyard_worker.probes import probe

if TYPE_CHECKING:
    from collections.abc import Mapping

    from steelyard_worker.frameworks.jax.layers import Layers

EPSILON = 1e-12


def forward(layers: Layers, sizes: dict[str, Any], batch: Mapping[str, jax.Array]) -> dict[str, jax.Array]:
    """Return scores of the masked words (N, M, vocabulary), and of the second sentence being the next (0) or a random one (1)."""
    x = _embed(layers, batch["input_ids"], batch["segment_ids"])
    keep = batch["input_mask"][:, None, None, :] > 0
    for number in range(sizes["layers"]):
        x = layers.block(partial(_layer, name=f"layer{number}", sizes=sizes), x, keep)
    pooled = jnp.tanh(probe("pooler", layers.dense("pooler", x[:, 0])))
    places = batch["masked_lm_positions"]
    rows = places + x.shape[1] * jnp.arange(x.shape[0], dtype=places.dtype)[:, None]
    masked = x.reshape(-1, x.shape[2])[rows]
    return {"words": _score_words(layers, masked, sizes), "next": layers.dense("next", pooled)}


def _embed(layers: Layers, ids: jax.Array, segments: jax.Array) -> jax.Array:
    """Ids and segments (N, T) -> (N, T, hidden)."""
    position = layers.weight("embeddings.position.weight")[: ids.shape[1]]
    x = layers.weight("embeddings.word.weight")[ids] + position + layers.weight("embeddings.segment.weight")[segments]
    return layer_norm(layers, "embeddings.norm", x, EPSILON)


def _layer(layers: Layers, x: jax.Array, keep: jax.Array, name: str, sizes: dict[str, Any]) -> jax.Array:
    context = self_attention(layers, f"{name}.attention", x, keep, sizes["heads"])
    x = x + layers.dense(f"{name}.attention.output", context)
    x = layer_norm(layers, f"{name}.attention.norm", x, EPSILON)
    inner = _gelu(layers.dense(f"{name}.intermediate", x), sizes)
    return layer_norm(layers, f"{name}.norm", x + layers.dense(f"{name}.output", inner), EPSILON)


def _score_words(layers: Layers, x: jax.Array, sizes: dict[str, Any]) -> jax.Array:
    """Score all words with the rows of the word embedding: (N, M, hidden) -> (N, M, vocabulary)."""
    x = layer_norm(layers, "words.norm", _gelu(layers.dense("words.transform", x), sizes), EPSILON)
    return x @ layers.weight("embeddings.word.weight").T + layers.weight("words.bias")


def _gelu(x: jax.Array, sizes: dict[str, Any]) -> jax.Array:
    return jax.nn.gelu(x, approximate=sizes["gelu"] == "tanh")  # JAX's default is the tanh form (P-30)


def loss(outputs: Mapping[str, jax.Array], batch: Mapping[str, jax.Array]) -> jax.Array:
    """Weighted mean over all masked words of the batch, plus the mean over its sentence pairs."""
    weights = batch["masked_lm_weights"]
    words = _surprise(outputs["words"], batch["masked_lm_ids"])
    following = _surprise(outputs["next"], batch["next_sentence_label"])
    return jnp.sum(words * weights) / (jnp.sum(weights) + 1e-5) + jnp.mean(following)


def _surprise(logits: jax.Array, truth: jax.Array) -> jax.Array:
    chosen = jnp.take_along_axis(logits, truth[..., None], axis=-1)[..., 0]
    return jax.nn.logsumexp(logits, axis=-1) - chosen
