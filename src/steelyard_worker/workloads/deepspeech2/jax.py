"""Deep Speech 2 in JAX: functions over named tensors; images (N, F, T, C), sequences time-major."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import jax.numpy as jnp
import optax

from steelyard_worker.frameworks.jax.recurrent import bidirectional
from steelyard_worker.probes import probe

if TYPE_CHECKING:
    from collections.abc import Mapping

    import jax

    from steelyard_worker.frameworks.jax.layers import Layers


def forward(layers: Layers, sizes: dict[str, Any], batch: Mapping[str, jax.Array]) -> dict[str, jax.Array]:
    """Spectrograms (N, F, T, 1) and their lengths (N,) -> logits (N, T', classes)."""
    lengths = (batch["frames"] + 1) // 2
    x = _clipped(layers, "conv1", batch["spectrogram"], lengths, stride=(2, 2), padding=(20, 5))
    x = _clipped(layers, "conv2", x, lengths, stride=(2, 1), padding=(10, 5))
    n, bins, steps, channels = x.shape
    # Channels before bins, so that features are channel-major (P-18).
    x = x.transpose(2, 0, 3, 1).reshape(steps, n, channels * bins)
    for layer in range(1, sizes["layers"] + 1):
        x = layers.block(partial(_recurrent, name=f"rnn{layer}", normed=layer > 1), x, lengths)
    x = layers.batch_norm("head.bn", x, epsilon=1e-5, momentum=0.1)
    return {"logits": (x @ layers.weight("head.dense.weight")).transpose(1, 0, 2)}


def _recurrent(layers: Layers, x: jax.Array, lengths: jax.Array, name: str, normed: bool) -> jax.Array:
    """Batch norm over features, except in the first layer, then an LSTM whose two directions are summed."""
    if normed:
        x = layers.batch_norm(f"{name}.bn", x, epsilon=1e-5, momentum=0.1)
    onward, backward = bidirectional(layers, name, x, lengths)
    return probe(name, onward + backward)


def _clipped(
    layers: Layers, name: str, x: jax.Array, lengths: jax.Array, stride: tuple[int, int], padding: tuple[int, int]
) -> jax.Array:
    """Convolution over (frequency, time), batch norm over all positions, clip; frames after the end are set to zero."""
    x = layers.conv(f"{name}.conv", x, stride=stride, padding=padding)
    x = jnp.clip(layers.batch_norm(f"{name}.bn", x, epsilon=1e-5, momentum=0.1), 0, 20)
    return probe(name, jnp.where(_beyond(x.shape[2], lengths)[:, None, :, None], 0, x))


def _beyond(steps: int, lengths: jax.Array) -> jax.Array:
    return jnp.arange(steps) >= lengths[:, None]


def loss(outputs: Mapping[str, jax.Array], batch: Mapping[str, jax.Array]) -> jax.Array:
    """CTC, blank 0, summed over the batch and divided by its size; a transcript that cannot be aligned counts as 0."""
    logits, labels, letters = outputs["logits"], batch["transcript"], batch["transcript_length"]
    lengths = (batch["frames"] + 1) // 2
    padded = [_beyond(*pair).astype(logits.dtype) for pair in ((logits.shape[1], lengths), (labels.shape[1], letters))]
    each = optax.ctc_loss(logits, padded[0], labels, padded[1], blank_id=0)
    # Equal letters need a blank between them. Without room for it, Optax returns 1e5 and a gradient (P-36).
    doubled = (labels[:, 1:] == labels[:, :-1]) & (labels[:, 1:] > 0)
    return jnp.mean(jnp.where(letters + doubled.sum(axis=1) <= lengths, each, 0))
