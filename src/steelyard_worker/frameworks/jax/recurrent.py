"""LSTM layers with one bias (P-21) over time-major sequences (T, N, width): our loop, or cuDNN's kernel on NVIDIA GPUs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import jax
import jax.numpy as jnp
from jax.experimental.layout import Layout, with_layout_constraint

if TYPE_CHECKING:
    from collections.abc import Sequence

    from steelyard_worker.frameworks.jax.layers import Layers

# Values of the knob `lstm`.
LOOP, FUSED = "loop", "fused"
# The order of an array of three axes in memory, which cuDNN's kernel expects.
BY_ROWS = Layout(major_to_minor=(0, 1, 2))


def lstm_cell(z: jax.Array, c: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Gates z (N, 4H) and cell state (N, H) -> (hidden state, cell state)."""
    i, f, g, o = jnp.split(z, 4, axis=-1)
    c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
    return jax.nn.sigmoid(o) * jnp.tanh(c), c


def lstm(layers: Layers, steps: jax.Array, name: str) -> jax.Array:
    """One direction over all steps from zero state: (T, N, width) -> (T, N, hidden)."""
    if layers.choices.lstm == FUSED:
        return _fused(layers, [name], steps)
    return layers.recur(name, lstm_cell, steps, backward=False)


def bidirectional(
    layers: Layers, name: str, steps: jax.Array, lengths: jax.Array | None = None
) -> tuple[jax.Array, jax.Array]:
    """Both directions: (T, N, width) -> two of (T, N, hidden); of `lengths` (N,) valid steps only, 0 after those (P-25).

    In our loop, the state is set to zero at steps after the length. The backward direction visits those first, so it starts from
    zero at the last valid step. XLA fuses that into the cell; reversing sequences would need a scatter in the gradient.
    """
    names = f"{name}.forward", f"{name}.backward"
    if layers.choices.lstm == FUSED:
        onward, backward = jnp.split(_fused(layers, names, steps, lengths), 2, axis=-1)
        return onward, backward
    valid = None if lengths is None else (jnp.arange(len(steps))[:, None] < lengths).astype(steps.dtype)[..., None]
    onward, backward = (layers.recur(each, lstm_cell, steps, backward=each == names[1], valid=valid) for each in names)
    return onward, backward


def _fused(layers: Layers, names: Sequence[str], steps: jax.Array, lengths: jax.Array | None = None) -> jax.Array:
    """One or both directions in cuDNN's kernel, `jax.experimental.rnn`: (T, N, width) -> (T, N, directions * hidden).

    The kernel wants batches first, all weights in one vector, matrices as (4H, in), and two biases, of which the second is zero.
    It reads its arrays row by row but does not say so to XLA, which may keep them in another order, so the order is prescribed.
    """
    from jax.experimental import rnn  # only NVIDIA GPUs need it

    matrices = [layers.weight(f"{each}.{kind}") for each in names for kind in ("w_ih", "w_hh")]
    biases = [layers.weight(f"{each}.b") for each in names]
    packed = [matrix.T.ravel() for matrix in matrices] + [part for b in biases for part in (b, jnp.zeros_like(b))]
    (length, samples, width), hidden = steps.shape, len(matrices[1])
    zero = jnp.zeros((len(names), samples, hidden), steps.dtype)
    valid = jnp.full(samples, length, jnp.int32) if lengths is None else lengths.astype(jnp.int32)
    batches = with_layout_constraint(steps.transpose(1, 0, 2), BY_ROWS)
    found, _, _ = rnn.lstm(batches, zero, zero, jnp.concatenate(packed), valid, width, hidden, 1, 0.0, len(names) == 2)
    return with_layout_constraint(found, BY_ROWS).transpose(1, 0, 2)
