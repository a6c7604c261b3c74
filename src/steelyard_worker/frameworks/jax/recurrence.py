"""One recurrent layer, z_t = x_t w_ih + h_(t-1) w_hh + b and (h_t, c_t) = cell(z_t, c_(t-1)), under the knob `recurrence`.

The cell is the workload's own; what is written here holds for any cell with one input and one recurrent matrix.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
from jax import lax

if TYPE_CHECKING:
    from collections.abc import Callable

    Cell = Callable[[jax.Array, jax.Array], tuple[jax.Array, jax.Array]]


@dataclass(frozen=True)
class Recurrence:
    """How the recurrence is run: `formulation` is "checkpointed", "scan" or "hoisted", `unroll` goes to `lax.scan`."""

    formulation: str = "checkpointed"
    unroll: int = 1

    def run(
        self, cell: Cell, x: jax.Array, w_ih: jax.Array, w_hh: jax.Array, b: jax.Array, backward: bool,
        valid: jax.Array | None = None,
    ) -> jax.Array:  # fmt: skip
        """Run (T, N, in) from zero state, from the last step if `backward`: hidden states (T, N, H).

        Matrices are (in, Z) and (H, Z), b is (Z,). Where `valid` (T, N, 1) is 0 instead of 1, the states are set to zero.
        "checkpointed" keeps h and c of every step for the gradient and computes the rest again, "scan" keeps all intermediate
        values, "hoisted" multiplies by w_ih before the scan.
        """

        def step(carry: Any, at: tuple[jax.Array, jax.Array | None]) -> tuple[Any, jax.Array]:
            (h, c), (given, kept) = carry, at
            projected = given if self.formulation == "hoisted" else given @ w_ih
            h, c = cell(projected + h @ w_hh + b, c)
            if kept is not None:
                h, c = h * kept, c * kept
            return (h, c), h

        if self.formulation == "hoisted":
            x = x @ w_ih
        if self.formulation == "checkpointed":
            step = jax.checkpoint(step, prevent_cse=False)  # a scan needs no guard against merged recomputation
        zero = jnp.zeros((x.shape[1], w_hh.shape[0]), x.dtype)
        return lax.scan(step, (zero, zero), (x, valid), reverse=backward, unroll=self.unroll)[1]
