"""One recurrent layer, z_t = inputs_t + h_(t-1) w and (h_t, c_t) = cell(z_t, c_(t-1)), as the knob `recurrence` has it.

The cell is the workload's own; what is written here holds for any cell whose only matrix is the recurrent one.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
from jax import lax

if TYPE_CHECKING:
    from collections.abc import Callable

    Cell = Callable[[jax.Array, jax.Array], tuple[jax.Array, jax.Array]]


def recur(formulation: str, unroll: int, cell: Cell, inputs: jax.Array, w: jax.Array, backward: bool) -> jax.Array:
    """Run inputs (T, N, Z) from zero state through the cell with w (H, Z), from the end if `backward`: h (T, N, H)."""
    run = _with_late_weights if formulation == "late-weights" else _plain
    return run(cell, unroll, backward, inputs, w)


def _plain(cell: Cell, unroll: int, backward: bool, inputs: jax.Array, w: jax.Array) -> jax.Array:
    """`lax.scan`, differentiated by JAX: its gradient adds to w's gradient in every time step."""

    def step(carry: Any, z: jax.Array) -> tuple[Any, jax.Array]:
        h, c = cell(z + carry[0] @ w, carry[1])
        return (h, c), h

    return lax.scan(step, _zeros(inputs, w), inputs, reverse=backward, unroll=unroll)[1]


@partial(jax.custom_vjp, nondiff_argnums=(0, 1, 2))
def _with_late_weights(cell: Cell, unroll: int, backward: bool, inputs: jax.Array, w: jax.Array) -> jax.Array:
    """The same scan, with w's gradient taken after the last step, as one matrix product over all time steps."""
    return _scan_keeping(cell, unroll, backward, inputs, w)[0]


def _scan_keeping(cell: Cell, unroll: int, backward: bool, inputs: jax.Array, w: jax.Array) -> tuple[jax.Array, Any]:
    def step(carry: Any, z: jax.Array) -> tuple[Any, Any]:
        z = z + carry[0] @ w
        h, c = cell(z, carry[1])
        return (h, c), (h, z, carry[1])

    _, (hs, zs, cs) = lax.scan(step, _zeros(inputs, w), inputs, reverse=backward, unroll=unroll)
    return hs, (hs, zs, cs, w)


def _scan_back(cell: Cell, unroll: int, backward: bool, kept: Any, dhs: jax.Array) -> tuple[jax.Array, jax.Array]:
    hs, zs, cs, w = kept

    def step(carry: Any, at: Any) -> tuple[Any, jax.Array]:
        dh, z, c = at
        _, pull = jax.vjp(cell, z, c)
        dz, dc = pull((carry[0] + dh, carry[1]))
        return (dz @ w.T, dc), dz

    _, dzs = lax.scan(step, _zeros(zs, w), (dhs, zs, cs), reverse=not backward, unroll=unroll)
    before, after = (hs[1:], dzs[:-1]) if backward else (hs[:-1], dzs[1:])
    return dzs, jnp.einsum("tnh,tnz->hz", before, after)


_with_late_weights.defvjp(_scan_keeping, _scan_back)


def _zeros(inputs: jax.Array, w: jax.Array) -> tuple[jax.Array, jax.Array]:
    zero = jnp.zeros((inputs.shape[1], w.shape[0]), inputs.dtype)
    return zero, zero
