"""Recurrent loops for the knob `recurrence`: one layer, z_t = x_t w_ih + h_(t-1) w_hh + b, and custom loops of workloads."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
from jax import lax

if TYPE_CHECKING:
    from collections.abc import Callable

    Cell = Callable[[jax.Array, jax.Array], tuple[jax.Array, jax.Array]]
    Affine = Callable[[str, jax.Array], jax.Array]
    Step = Callable[[Affine, Any, Any, Any], tuple[Any, Any]]

# Number of units per sample of the batch from which "deferred" is the fastest. Adding the gradient of a time step to that of the
# weights costs units x units, storing its gates costs samples x units. Measured for LSTMs on two cores: with 2 units per sample
# checkpointed takes 0.8 times as long as deferred, with 4 the same, with 8 1.2 to 1.9 times, with 400 nine times.
AMPLE = 4
# Time steps per iteration that the value "auto" of the knob `unroll` selects. Forward and backward through one layer of 64 to
# 1,024 units: on an H200, 8 steps took 0.55 to 0.91 times as long as one, and less than cuDNN's kernel; on two cores, 1.2 to 3.7
# times as long.
AUTO, FEW, MANY = "auto", 1, 8


def unrolled(requested: str, device: str) -> int:
    """Return the time steps per iteration for a value of the knob `unroll` on a device."""
    if requested != AUTO:
        return int(requested)
    return FEW if device == "cpu" else MANY


def unroll_shown(found: int, requested: str, device: str) -> str:
    """Return the value of the knob that traced loops show: "auto" where that was requested and selects as many."""
    return AUTO if requested == AUTO and found == unrolled(AUTO, device) else str(found)


@dataclass(frozen=True)
class Recurrence:
    """How recurrences run: a value of the knob `recurrence`; `unroll` is that of `lax.scan`.

    "scan" is `lax.scan` under JAX's differentiation, which stores all intermediate values. "checkpointed" stores only the state
    between steps and computes the rest again. "hoisted" multiplies a layer's inputs by w_ih before the scan. "deferred" does the
    same and moves the gradients of weights out of the loop: the sum over time of products is one product over time. "auto" is
    "deferred" or "checkpointed", by the size of the layer.
    """

    formulation: str = "auto"
    unroll: int = 1

    def resolved(self, units: int, samples: int) -> Recurrence:
        """Return the formulation that "auto" selects for these numbers of units and samples; others are returned unchanged."""
        if self.formulation != "auto":
            return self
        return replace(self, formulation="deferred" if units >= AMPLE * samples else "checkpointed")

    def run(
        self,
        cell: Cell,
        x: jax.Array,
        w_ih: jax.Array,
        w_hh: jax.Array,
        b: jax.Array,
        backward: bool,
        valid: jax.Array | None = None,
    ) -> jax.Array:
        """Run a layer over (T, N, in) from zero state, from the last step if `backward`: hidden states (T, N, H).

        The cell is (z_t, c_(t-1)) -> (h_t, c_t). Matrices are (in, Z) and (H, Z), b is (Z,). Where `valid` (T, N, 1) is 0 instead
        of 1, the states are set to zero.
        """
        chosen = self.resolved(w_hh.shape[0], x.shape[1])
        early = chosen.formulation in ("hoisted", "deferred")

        def step(
            affine: Affine, w_ih: jax.Array, carry: Any, at: tuple[jax.Array, jax.Array | None]
        ) -> tuple[Any, jax.Array]:
            (h, c), (given, inside) = carry, at
            z = affine("gates", h)
            h, c = cell(z if early else z + given @ w_ih, c)
            if inside is not None:
                h, c = h * inside, c * inside
            return (h, c), h

        added, given = (x @ w_ih + b, None) if early else (b, x)
        zero = jnp.zeros((x.shape[1], w_hh.shape[0]), x.dtype)
        return chosen.loop(step, {"gates": w_hh}, {"gates": added}, (given, valid), w_ih, (zero, zero), backward)

    def loop(
        self,
        step: Step,
        weights: dict[str, jax.Array],
        added: dict[str, jax.Array],
        inputs: Any,
        shared: Any,
        start: Any,
        backward: bool = False,
    ) -> Any:
        """Run step(affine, shared, carry, inputs_t) -> (carry, outputs_t) over the first axis of `inputs`: all outputs.

        affine(name, value (N, in)) is value @ weights[name] + added[name]: a matrix (in, Z), and either a bias (Z,) or the values
        of all steps (T, N, Z), of which each step uses its own. A step uses each name once. Other arrays that are differentiated
        must be passed in `shared`. "auto" must be resolved before.
        """
        biases = {name: value for name, value in added.items() if value.ndim == 1}
        added = {name: value for name, value in added.items() if name not in biases}
        if self.formulation == "deferred":
            shape = next(iter(added.values())).shape[:2]
            added |= {name: jnp.broadcast_to(bias, (*shape, len(bias))) for name, bias in biases.items()}
            return _deferred(step, backward, self.unroll, weights, added, inputs, shared, start)

        def body(carry: Any, at: Any) -> tuple[Any, Any]:
            added, given = at
            terms = biases | added
            return step(lambda name, value: value @ weights[name] + terms[name], shared, carry, given)

        if self.formulation == "checkpointed":
            body = jax.checkpoint(body, prevent_cse=False)  # a scan needs no protection against merged recomputation
        return lax.scan(body, start, (added, inputs), reverse=backward, unroll=self.unroll)[1]


@partial(jax.custom_vjp, nondiff_argnums=(0, 1, 2))
def _deferred(
    step: Step, backward: bool, unroll: int, weights: Any, added: Any, inputs: Any, shared: Any, start: Any
) -> Any:
    return _recorded(step, backward, unroll, weights, added, inputs, shared, start)[0]


def _recorded(
    step: Step, backward: bool, unroll: int, weights: Any, added: Any, inputs: Any, shared: Any, start: Any
) -> tuple[Any, dict[str, jax.Array]]:
    """Return all outputs, and what every matrix was multiplied with at every step: name -> (T, N, in)."""

    def body(carry: Any, at: Any) -> tuple[Any, Any]:
        (added, given), factors = at, {}

        def affine(name: str, value: jax.Array) -> jax.Array:
            factors[name] = value
            return value @ weights[name] + added[name]

        carry, out = step(affine, shared, carry, given)
        return carry, (out, factors)

    return lax.scan(body, start, (added, inputs), reverse=backward, unroll=unroll)[1]


def _onward(step: Step, backward: bool, unroll: int, weights: Any, *rest: Any) -> tuple[Any, Any]:
    outputs, pull, factors = jax.vjp(partial(_recorded, step, backward, unroll, weights), *rest, has_aux=True)
    return outputs, (pull, factors)


def _back(step: Step, backward: bool, unroll: int, residuals: Any, cotangent: Any) -> tuple[Any, ...]:
    """Return the gradients: a summand has the gradient of its product; a matrix has that gradient times the recorded factors."""
    del step, backward, unroll
    pull, factors = residuals
    of_added, *others = pull(cotangent)
    of_weights = {name: jnp.tensordot(factors[name], of_added[name], ((0, 1), (0, 1))) for name in factors}
    return of_weights, of_added, *others


_deferred.defvjp(_onward, _back)
