"""Tacotron 2 in JAX: the decoder's scan computes only what depends on the previous frame."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp

from steelyard_worker.frameworks.jax.convolution import convolve
from steelyard_worker.frameworks.jax.recurrent import bidirectional, lstm_cell
from steelyard_worker.probes import probe

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from steelyard_worker.frameworks.jax.layers import Layers
    from steelyard_worker.frameworks.jax.recurrence import Affine

    State = Shared = tuple[jax.Array, ...]


def forward(layers: Layers, sizes: dict[str, Any], batch: Mapping[str, jax.Array]) -> dict[str, jax.Array]:
    """Text (N, L), its lengths, mel (N, M, T) -> mel, mel_post (N, M, T), gate (N, T)."""
    memory = _encode(layers, layers.weight("embedding.weight")[batch["text"]], batch["text_length"])
    memory = probe("encoded", memory)
    read = probe("decoded", _decode(layers, sizes["prenet"], batch["mel"], memory, batch["text_length"]))
    frames = layers.dense("frame", read).transpose(1, 0, 2)  # (N, T, M), for the postnet's convolutions
    refined = frames[:, None]
    for number in range(5):
        refined = _convolved(layers, "postnet", number, refined)
        refined = jnp.tanh(refined) if number < 4 else refined
    both = {"mel": frames, "mel_post": frames + refined[:, 0]}
    return {name: x.transpose(0, 2, 1) for name, x in both.items()} | {"gate": layers.dense("gate", read)[..., 0].T}


def _convolved(layers: Layers, part: str, number: int, x: jax.Array) -> jax.Array:
    """Convolution of width 5, batch norm: (N, 1, T, channels) -> (N, 1, T, out)."""
    kernel = layers.weight(f"{part}.conv{number}.weight")[None]
    x = convolve(layers.choices.convolution, x, kernel, 1, (0, 2))
    return probe(f"{part}.bn{number}", layers.batch_norm(f"{part}.bn{number}", x, epsilon=1e-5, momentum=0.1))


def _encode(layers: Layers, x: jax.Array, lengths: jax.Array) -> jax.Array:
    """Embedded text (N, L, embedding) and lengths -> memory (N, L, embedding), zero after the lengths."""
    x = x[:, None]
    for number in range(3):
        x = jax.nn.relu(_convolved(layers, "encoder", number, x))
    halves = bidirectional(layers, "encoder.lstm", x[:, 0].transpose(1, 0, 2), lengths)
    return jnp.concatenate(halves, axis=-1).transpose(1, 0, 2)


def _decode(layers: Layers, taken: int, mel: jax.Array, memory: jax.Array, lengths: jax.Array) -> jax.Array:
    """Run the scan over frames: (T, N, H + embedding), the second LSTM's states concatenated with the contexts."""
    x = jnp.pad(mel.transpose(2, 0, 1)[:-1], ((1, 0), (0, 0), (0, 0)))
    for number in range(2):
        x = jax.nn.relu(x @ layers.weight(f"prenet.dense{number}.weight"))
    x = probe("prenet", x)
    w_ih, w_hh = layers.weight("decoder.lstm1.w_ih"), layers.weight("decoder.lstm1.w_hh")
    hidden, width, (batch, characters) = w_hh.shape[0], memory.shape[2], memory.shape[:2]
    recurrence, (attend, shared) = (
        layers.choices.recurrence.resolved(hidden, batch),
        _attention(layers, memory, lengths),
    )
    weights = {
        "lstm1": jnp.concatenate((w_ih[taken:], w_hh)),
        "lstm2": jnp.concatenate((layers.weight("decoder.lstm2.w_ih"), layers.weight("decoder.lstm2.w_hh"))),
        "query": layers.weight("attention.query.weight"),
    }
    added = {
        "lstm1": x @ w_ih[:taken] + layers.weight("decoder.lstm1.b"),
        "lstm2": layers.weight("decoder.lstm2.b"),
        "query": jnp.zeros(weights["query"].shape[1], x.dtype),
    }

    def step(affine: Affine, shared: Shared, state: State, at: None) -> tuple[State, tuple[jax.Array, jax.Array]]:
        del at  # the inputs of a frame are in `added`
        h1, c1, h2, c2, context, seen = state
        h1, c1 = lstm_cell(affine("lstm1", jnp.concatenate((context, h1), 1)), c1)
        h2, c2 = lstm_cell(affine("lstm2", jnp.concatenate((h1, h2), 1)), c2)
        context, share = attend(affine("query", h2), seen, shared)
        return (h1, c1, h2, c2, context, seen + share), (h2, context)

    start = tuple(jnp.zeros((batch, size), x.dtype) for size in (hidden, hidden, hidden, hidden, width, characters))
    return jnp.concatenate(recurrence.loop(step, weights, added, None, shared, start), axis=-1)


def _attention(
    layers: Layers, memory: jax.Array, lengths: jax.Array
) -> tuple[Callable[[jax.Array, jax.Array, Shared], tuple[jax.Array, jax.Array]], Shared]:
    """Return a function for one frame's attention, and the tensors that all frames share.

    Projected state (N, units), cumulative weights (N, L), shared -> context (N, embedding), the new weights (N, L).
    """
    # The location convolution and its dense layer are both linear, so their product is one narrow convolution.
    kernel = layers.weight("attention.location_conv.weight")[:, 0] @ layers.weight("attention.location_dense.weight")
    window, characters = len(kernel), memory.shape[1]
    mask = jnp.where(jnp.arange(characters) < lengths[:, None], 0.0, -1e9).astype(memory.dtype)
    keys, v = memory @ layers.weight("attention.memory.weight"), layers.weight("attention.v.weight")[:, 0]

    def attend(query: jax.Array, cumulative: jax.Array, shared: Shared) -> tuple[jax.Array, jax.Array]:
        memory, keys, kernel, v, mask = shared
        padded = jnp.pad(cumulative, ((0, 0), (window // 2, window // 2)))
        around = jnp.stack([padded[:, place : place + characters] for place in range(window)], axis=-1)
        share = jax.nn.softmax(jnp.tanh(query[:, None] + keys + around @ kernel) @ v + mask)
        return jnp.einsum("nl,nlc->nc", share, memory), share

    return attend, (memory, keys, kernel, v, mask)


def loss(outputs: Mapping[str, jax.Array], batch: Mapping[str, jax.Array]) -> jax.Array:
    """Squared errors of both spectrograms and the gate's cross-entropy, plain means that include padding."""
    target, gate = batch["mel"], outputs["gate"]
    ended = jnp.arange(gate.shape[1]) >= batch["mel_length"][:, None] - 1
    squared = sum(jnp.mean(jnp.square(outputs[name] - target)) for name in ("mel", "mel_post"))
    return squared + jnp.mean(jax.nn.softplus(gate) - ended * gate)
