"""LSTM layers with one bias (P-21) over time-major sequences (T, N, width)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import jax
import jax.numpy as jnp

if TYPE_CHECKING:
    from steelyard_worker.frameworks.jax.layers import Layers


def lstm_cell(z: jax.Array, c: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Gates z (N, 4H) and cell state (N, H) -> (hidden state, cell state)."""
    i, f, g, o = jnp.split(z, 4, axis=-1)
    c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
    return jax.nn.sigmoid(o) * jnp.tanh(c), c


def lstm(layers: Layers, steps: jax.Array, name: str) -> jax.Array:
    """One direction over all steps from zero state: (T, N, width) -> (T, N, hidden)."""
    return layers.recur(name, lstm_cell, steps, backward=False)


def bidirectional(layers: Layers, name: str, steps: jax.Array, lengths: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Both directions over the valid steps: (T, N, width), lengths (N,) -> two of (T, N, hidden), 0 after the lengths (P-25).

    The state is set to zero at steps after the length. The backward direction visits those first, so it starts from zero at the
    last valid step. XLA fuses that into the cell; reversing sequences would need a scatter in the gradient.
    """
    valid = (jnp.arange(len(steps))[:, None] < lengths).astype(steps.dtype)[..., None]
    onward = layers.recur(f"{name}.forward", lstm_cell, steps, backward=False, valid=valid)
    return onward, layers.recur(f"{name}.backward", lstm_cell, steps, backward=True, valid=valid)
