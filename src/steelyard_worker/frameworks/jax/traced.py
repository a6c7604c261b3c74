"""Find out which formulations of layers JAX really traces, from its intermediate form (jaxpr)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp

from steelyard_worker.dropout import OFF, ON
from steelyard_worker.frameworks.jax import convolution, recurrent
from steelyard_worker.frameworks.jax.layers import RANDOM, Layers

if TYPE_CHECKING:
    from collections.abc import Callable

    from steelyard_worker.frameworks.jax.layers import Choices
    from steelyard_worker.frameworks.jax.recurrence import Recurrence

    Operations = list[tuple[str, dict[str, Any]]]

# Names of the operation of `jax.checkpoint`, by version of JAX.
CHECKPOINTS = {"checkpoint", "remat", "remat2"}
# The operation of `jax.experimental.rnn`.
CUDNN_LSTM = "rnn_fwd"


def choices(chosen: Choices) -> dict[str, Any]:
    """Trace a small layer of each kind and return the settings that its operations show."""
    with jax.disable_jit(False):
        return {
            "convolution": _convolution(chosen.convolution),
            "embedding": _embedding(),
            "dropout": _dropout(chosen),
            "recomputation": _recomputation(chosen),
            "lstm": _lstm(chosen),
            **_recurrence(chosen.recurrence),
        }


def _convolution(formulation: str) -> str:
    """Trace images of 8 and of 2 pixels a side: `auto` computes the second, on which XLA is slow, in another way."""
    used = []
    for size in (8, 2):
        found = _operations(
            lambda x, k: convolution.convolve(formulation, x, k, 1, 1), (1, size, size, 2), (3, 3, 2, 2)
        )
        used.append("conv_general_dilated" in dict(found))
    shown = {"auto": [True, jax.default_backend() != "cpu"], "xla": [True, True], "matmul": [False, False]}
    return next((name for name in (formulation, *shown) if shown.get(name) == used), "unknown")


def _embedding() -> str:
    """Differentiate a lookup of one row of two: the gradient has all rows."""
    gradient = jax.eval_shape(jax.grad(lambda table: table[jnp.zeros(1, int)].sum()), jnp.zeros((2, 1)))
    return "dense" if gradient.shape == (2, 1) else "sparse"


def _dropout(chosen: Choices) -> str:
    """Look for random numbers in the forward pass of a network in training."""
    layers = Layers({RANDOM: jax.random.key(0)}, training=True, choices=chosen)
    return ON if "random_bits" in dict(_operations(lambda x: layers.dropout(x, 0.5), (2,))) else OFF


def _recomputation(chosen: Choices) -> str:
    """Look for `jax.checkpoint` in the forward pass of a block in training."""
    layers = Layers({}, training=True, choices=chosen)
    operations = dict(_operations(lambda x: layers.block(lambda _, x: jnp.sin(x), x), (1,)))
    return "blocks" if operations.keys() & CHECKPOINTS else "none"


def _lstm(chosen: Choices) -> str:
    """Look for cuDNN's kernel in an LSTM of one unit."""
    shapes = {"layer.w_ih": (1, 4), "layer.w_hh": (1, 4), "layer.b": (4,)}

    def layer(x: jax.Array, *weights: jax.Array) -> jax.Array:
        found = Layers(dict(zip(shapes, weights, strict=True)), training=True, choices=chosen)
        return recurrent.lstm(found, x, "layer")

    operations = dict(_operations(layer, (1, 1, 1), *shapes.values()))
    return recurrent.FUSED if CUDNN_LSTM in operations else recurrent.LOOP


def _recurrence(recurrence: Recurrence) -> dict[str, Any]:
    """Trace layers of two and of four units per sample: `auto` computes them in different ways."""
    few, many = (_formulation(recurrence, units) for units in (2, 4))
    name = few["recurrence"] if few == many else "auto" if recurrence.formulation == "auto" else "unknown"
    return {**many, "recurrence": name}


def _formulation(recurrence: Recurrence, units: int) -> dict[str, Any]:
    """Return the formulation that a layer shows: by its products inside the scan, by checkpointing, by a gradient of its own."""

    def layer(x: jax.Array, w: jax.Array, b: jax.Array) -> jax.Array:
        return recurrence.run(lambda z, c: (z, c), x, w, w, b, backward=False)

    operations = _operations(layer, (100, 1, units), (units, units), (units,))
    (scan,) = [parameters for name, parameters in operations if name == "scan"]
    body = _flat(scan["jaxpr"].jaxpr)
    if any(name in CHECKPOINTS for name, _ in body):
        formulation = "checkpointed"
    elif any(name.startswith("custom_vjp_call") for name, _ in operations):
        formulation = "deferred"
    else:
        formulation = {1: "hoisted", 2: "scan"}.get([name for name, _ in body].count("dot_general"), "unknown")
    return {"recurrence": formulation, "unroll": scan["unroll"]}


def _operations(function: Callable[..., Any], *shapes: tuple[int, ...]) -> Operations:
    return _flat(jax.make_jaxpr(function)(*(jnp.zeros(shape) for shape in shapes)).jaxpr)


def _flat(jaxpr: Any) -> Operations:
    """List (name, parameters) of every operation, including those of inner functions."""
    found: Operations = []
    for equation in jaxpr.eqns:
        found.append((equation.primitive.name, equation.params))
        for value in equation.params.values():
            inner = getattr(value, "jaxpr", value)
            found += _flat(inner) if hasattr(inner, "eqns") else []
    return found
