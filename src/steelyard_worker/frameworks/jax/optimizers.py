"""Update rules: optax's own, and the canonical formulas written out. Both are pure functions inside the jitted step."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np
import optax

from steelyard_worker.protocol import WRITTEN_OUT, Optimizer, Refusal

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    Tensors = Mapping[str, jax.Array]


def update_rule(spec: Optimizer, names: list[str]) -> Native | Strict:
    """Return the rule for the trainable tensors of these names."""
    return Strict(spec) if spec.implementation == "reference" else Native(spec, names)


class Native:
    """Optax; weight decay goes to the tensors listed, before the scaling where it is coupled."""

    def __init__(self, spec: Optimizer, names: list[str]) -> None:
        self._transform = _optax(spec, {name: name in spec.decay for name in names})
        self.init = self._transform.init

    def scalars(self) -> dict[str, Any]:
        """Optax counts inside its state."""
        return {}

    def update(self, tensors: Tensors, gradients: Tensors, memory: Any, scalars: Tensors) -> tuple[Tensors, Any]:
        """Return (updated tensors, updated optimizer state)."""
        del scalars
        updates, memory = self._transform.update(gradients, memory, tensors)
        return optax.apply_updates(tensors, updates), memory


def _optax(spec: Optimizer, decayed: dict[str, bool]) -> optax.GradientTransformation:
    makers: dict[str, Callable[[], optax.GradientTransformation]] = {
        "sgd": lambda: optax.sgd(spec.learning_rate, spec.momentum or None, spec.nesterov),
        "adam": lambda: optax.adam(spec.learning_rate, spec.beta1, spec.beta2, spec.epsilon),
        "adamw": lambda: optax.adamw(
            spec.learning_rate, spec.beta1, spec.beta2, spec.epsilon, weight_decay=spec.weight_decay, mask=decayed
        ),
        "lamb": lambda: optax.lamb(
            spec.learning_rate, spec.beta1, spec.beta2, spec.epsilon, weight_decay=spec.weight_decay, mask=decayed
        ),
    }
    if spec.name not in makers:
        raise Refusal(
            "unsupported", f"No native {spec.name} is known for JAX; known: {', '.join(makers)}. {WRITTEN_OUT}"
        )
    transform = makers[spec.name]()
    before = [optax.clip_by_global_norm(spec.clip)] if spec.clip else []
    if spec.weight_decay and any(decayed.values()) and spec.name in ("sgd", "adam"):
        before.append(optax.add_decayed_weights(spec.weight_decay, decayed))
    return optax.chain(*before, transform) if before else transform


class Strict:
    """The canonical formulas of every optimizer, tensor by tensor; scalars are computed on the host, step by step."""

    def __init__(self, spec: Optimizer) -> None:
        self._spec, self._t = spec, 0
        self._rule = {"sgd": self._sgd, "lamb": self._lamb}.get(spec.name, self._adam)

    def init(self, tensors: Tensors) -> dict[str, tuple[jax.Array, ...]]:
        """Return the zero moments of every tensor."""
        moments = 1 if self._spec.name == "sgd" else 2
        return {name: tuple(jnp.zeros_like(p) for _ in range(moments)) for name, p in tensors.items()}

    def scalars(self) -> dict[str, np.float64]:
        """Count a step and return what depends on its number, in the precision that the rule declares."""
        self._t += 1
        first, second = self._spec.corrections(self._t)
        return {"first": np.float64(first), "second": np.float64(second),
                "rate": np.float64(self._spec.learning_rate * math.sqrt(second) / first)}  # fmt: skip

    def update(self, tensors: Tensors, gradients: Tensors, memory: Any, scalars: Tensors) -> tuple[Tensors, Any]:
        """Return (updated tensors, updated moments)."""
        updated, moments = {}, {}
        if self._spec.clip:
            norm = jnp.sqrt(sum(jnp.vdot(g, g) for g in gradients.values()))
            gradients = {name: g * jnp.minimum(1, self._spec.clip / norm) for name, g in gradients.items()}
        for name, p in tensors.items():
            decay = self._spec.weight_decay if name in self._spec.decay else 0.0
            updated[name], moments[name] = self._rule(p, gradients[name], memory[name], decay, scalars)
        return updated, moments

    def _sgd(self, p: jax.Array, g: jax.Array, memory: Any, decay: float, scalars: Tensors) -> tuple[jax.Array, Any]:
        del scalars
        spec = self._spec
        g = g + decay * p if decay else g
        u = spec.momentum * memory[0] + g
        return p - spec.learning_rate * (g + spec.momentum * u if spec.nesterov else u), (u,)

    def _adam(self, p: jax.Array, g: jax.Array, memory: Any, decay: float, scalars: Tensors) -> tuple[jax.Array, Any]:
        spec = self._spec
        scalar = {name: jnp.asarray(value, p.dtype) for name, value in scalars.items()}
        if decay and spec.name == "adamw":
            p = p * (1 - spec.learning_rate * decay)
        elif decay:
            g = g + decay * p
        m, v = self._moments(g, memory)
        if spec.form == "canonical":
            corrected = jnp.sqrt(v / scalar["second"]) + spec.epsilon
            return p - spec.learning_rate * (m / scalar["first"]) / corrected, (m, v)
        return p - scalar["rate"] * m / (jnp.sqrt(v) + spec.epsilon), (m, v)

    def _lamb(self, p: jax.Array, g: jax.Array, memory: Any, decay: float, scalars: Tensors) -> tuple[jax.Array, Any]:
        scalar = {name: jnp.asarray(value, p.dtype) for name, value in scalars.items()}
        m, v = self._moments(g, memory)
        change = (m / scalar["first"]) / (jnp.sqrt(v / scalar["second"]) + self._spec.epsilon) + decay * p
        ours, theirs = jnp.linalg.norm(p), jnp.linalg.norm(change)
        some = (ours > 0) & (theirs > 0)
        ratio = jnp.where(some, ours / jnp.where(some, theirs, 1), 1)
        return p - self._spec.learning_rate * ratio * change, (m, v)

    def _moments(self, g: jax.Array, memory: Any) -> tuple[jax.Array, jax.Array]:
        spec, (m, v) = self._spec, memory
        return spec.beta1 * m + (1 - spec.beta1) * g, spec.beta2 * v + (1 - spec.beta2) * g * g
