"""What the chosen formulations really trace to, read from JAX's own intermediate form."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp

from steelyard_worker.frameworks.jax import convolution, recurrence

if TYPE_CHECKING:
    from collections.abc import Iterator

    from steelyard_worker.frameworks.jax.layers import Choices


def choices(chosen: Choices) -> dict[str, Any]:
    """Trace probes of the two kinds of layer with the choices made, and say which choices they show."""
    with jax.disable_jit(False):
        return {"convolution": _convolution(chosen), **_recurrence(chosen)}


def _convolution(chosen: Choices) -> str:
    """A large image shows what is done in general, one smaller than the kernel what is done for XLA's slow case."""
    used = [
        any(name == "conv_general_dilated" for name, _ in _operations(
            lambda x, k: convolution.convolve(chosen.convolution, x, k, 1, 1), (1, size, size, 2), (3, 3, 2, 2)
        ))
        for size in (8, 2)
    ]  # fmt: skip
    return {(True, True): "xla", (False, False): "matmul"}.get((used[0], used[1]), "auto")


def _recurrence(chosen: Choices) -> dict[str, Any]:
    found = list(_operations(
        lambda z, w: recurrence.recur(chosen.recurrence, chosen.unroll, lambda z, c: (z * c, c), z, w, False),
        (100, 1, 2), (2, 2),
    ))  # fmt: skip
    late = any(name.startswith("custom_vjp") for name, _ in found)
    unroll = next(parameters["unroll"] for name, parameters in found if name == "scan")
    return {"recurrence": "late-weights" if late else "scan", "unroll": unroll}


def _operations(function: Any, *shapes: tuple[int, ...]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield (name, parameters) of every operation in the function's jaxpr, those of inner ones included."""
    waiting = [jax.make_jaxpr(function)(*(jnp.zeros(shape) for shape in shapes)).jaxpr]
    while waiting:
        for equation in waiting.pop().eqns:
            yield equation.primitive.name, equation.params
            inner = (getattr(value, "jaxpr", value) for value in equation.params.values())
            waiting += [jaxpr for jaxpr in inner if hasattr(jaxpr, "eqns")]
