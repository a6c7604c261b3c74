"""Update rules: optax, and reference implementations of the canonical formulas; pure functions inside the jitted step."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np
import optax

from steelyard_worker.frameworks import update_scalars
from steelyard_worker.protocol import WRITTEN_OUT, Refusal

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from steelyard_worker.case import Optimizer
    from steelyard_worker.frameworks.base import Array

    Tensors = Mapping[str, jax.Array]


def update_rule(spec: Optimizer, names: list[str], rates: Array | None = None) -> Native | Reference:
    """Return the rule for the trainable tensors of these names; `rates`: of every step."""
    return Reference(spec, rates) if spec.implementation == "reference" else Native(spec, names, rates)


class Native:
    """Optax; weight decay applies to the tensors listed, before the scaling where it is coupled.

    Groups of tensors have transforms of their own (`optax.partition`); gradients are clipped before, by the norm of all.
    """

    def __init__(self, spec: Optimizer, names: list[str], rates: Array | None = None) -> None:
        own = [_partitioned(spec, names, rates)] if spec.groups else _optax(spec, names, rates)
        steps = [*([optax.clip_by_global_norm(spec.clip)] if spec.clip else []), *own]
        self._transform = optax.chain(*steps) if len(steps) > 1 else steps[0]
        self.init = self._transform.init

    def scalars(self) -> dict[str, Any]:
        """Return nothing: optax counts steps in its state."""
        return {}

    def forget(self) -> None:
        """Do nothing: all memory is in the state that `init` returns."""

    def update(self, tensors: Tensors, gradients: Tensors, memory: Any, scalars: Tensors) -> tuple[Tensors, Any]:
        """Return (updated tensors, updated optimizer state)."""
        del scalars
        updates, memory = self._transform.update(gradients, memory, tensors)
        return optax.apply_updates(tensors, updates), memory


def _scheduled(rates: Array) -> Callable[[jax.Array], jax.Array]:
    """Return a schedule of optax, which counts the steps from 0 in its state (P-46)."""
    table = jnp.asarray(rates)
    return lambda count: table[jnp.minimum(count, len(rates) - 1)]


def _partitioned(spec: Optimizer, names: list[str], rates: Array | None) -> optax.GradientTransformation:
    """Return a transform that updates the tensors of every group by a rule of their own."""
    parts = update_scalars.parts(spec, names)
    labels = {name: str(number) for number, part in enumerate(parts) for name in part.names}
    rules = {
        str(number): optax.chain(*_optax(rule, names, update_scalars.rates_times(rates, multiple)))
        for number, (rule, multiple, _) in enumerate(parts)
    }
    return optax.partition(rules, labels)


def _optax(spec: Optimizer, names: list[str], rates: Array | None) -> list[optax.GradientTransformation]:
    """Return the transforms of a rule after the clipping of gradients, one after the other."""
    rate = spec.learning_rate if rates is None else _scheduled(rates)
    decayed = {name: name in spec.decay for name in names}
    rules: dict[str, Callable[[], optax.GradientTransformation]] = {
        "sgd": lambda: optax.sgd(rate, spec.momentum or None, spec.nesterov),
        "adam": lambda: optax.adam(rate, spec.beta1, spec.beta2, spec.epsilon),
        "adamw": lambda: optax.adamw(
            rate, spec.beta1, spec.beta2, spec.epsilon, weight_decay=spec.weight_decay, mask=decayed
        ),
        "lamb": lambda: optax.lamb(
            rate, spec.beta1, spec.beta2, spec.epsilon, weight_decay=spec.weight_decay, mask=decayed
        ),
    }
    if spec.name not in rules:
        raise Refusal(
            "unsupported", f"JAX has no native {spec.name} here; available: {', '.join(rules)}. {WRITTEN_OUT}"
        )
    if spec.weight_decay and any(decayed.values()) and spec.name in ("sgd", "adam"):
        return [optax.add_decayed_weights(spec.weight_decay, decayed), rules[spec.name]()]
    return [rules[spec.name]()]


class Reference:
    """The formula of every optimizer in its declared form, tensor by tensor; scalars are computed on the host at every step."""

    def __init__(self, spec: Optimizer, rates: Array | None = None) -> None:
        self._spec, self._rates, self._t = spec, rates, 0
        self._rule = {"sgd": self._sgd, "lamb": self._lamb}.get(spec.name, self._adam)

    def init(self, tensors: Tensors) -> dict[str, tuple[jax.Array, ...]]:
        """Return the zero moments of every tensor."""
        moments = 1 if self._spec.name == "sgd" else 2
        return {name: tuple(jnp.zeros_like(p) for _ in range(moments)) for name, p in tensors.items()}

    def scalars(self) -> dict[str, np.float64]:
        """Count a step and return the scalars that depend on its number, in the precision that the rule declares."""
        spec, changing = self._spec, {}
        if self._rates is not None:
            changing = {"learning_rate": update_scalars.rate_at(self._rates, self._t)}
            spec = replace(spec, **changing)
        self._t += 1
        found = update_scalars.of_step(spec, self._t)._asdict() | changing
        return {name: np.float64(value) for name, value in found.items()}

    def forget(self) -> None:
        """Count the steps anew; the moments are in the state that `init` returns."""
        self._t = 0

    def update(self, tensors: Tensors, gradients: Tensors, memory: Any, scalars: Tensors) -> tuple[Tensors, Any]:
        """Return (updated tensors, updated moments)."""
        if "learning_rate" in scalars:
            precision = next(iter(tensors.values())).dtype
            rest = dict(scalars)
            now = replace(self._spec, learning_rate=jnp.asarray(rest.pop("learning_rate"), precision))
            return Reference(now).update(tensors, gradients, memory, rest)
        updated, moments = {}, {}
        if self._spec.clip:
            norm = jnp.sqrt(sum(jnp.vdot(g, g) for g in gradients.values()))
            gradients = {name: g * jnp.minimum(1, self._spec.clip / norm) for name, g in gradients.items()}
        for name, p in tensors.items():
            spec = self._spec.of_tensor(name)
            changing = _times_rate(scalars, self._spec.rate_of(name))
            updated[name], moments[name] = self._rule(spec, name, p, gradients[name], memory[name], changing)
        return updated, moments

    def _sgd(
        self, spec: Optimizer, name: str, p: jax.Array, g: jax.Array, memory: Any, scalars: Tensors
    ) -> tuple[jax.Array, Any]:
        del scalars
        decay = spec.decay_of(name)
        g = g + decay * p if decay else g
        inner, outer = update_scalars.rates_of(spec)
        u = spec.momentum * memory[0] + inner * g
        return p - outer * (inner * g + spec.momentum * u if spec.nesterov else u), (u,)

    def _adam(
        self, spec: Optimizer, name: str, p: jax.Array, g: jax.Array, memory: Any, scalars: Tensors
    ) -> tuple[jax.Array, Any]:
        decay = spec.decay_of(name)
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

    def _lamb(
        self, spec: Optimizer, name: str, p: jax.Array, g: jax.Array, memory: Any, scalars: Tensors
    ) -> tuple[jax.Array, Any]:
        decay = spec.decay_of(name)
        scalar = {name: jnp.asarray(value, p.dtype) for name, value in scalars.items()}
        m, v = self._moments(g, memory)
        change = (m / scalar["first"]) / (jnp.sqrt(v / scalar["second"]) + spec.epsilon) + decay * p
        norm, change_norm = jnp.linalg.norm(p), jnp.linalg.norm(change)
        nonzero = (norm > 0) & (change_norm > 0)
        ratio = jnp.where(nonzero, norm / jnp.where(nonzero, change_norm, 1), 1)
        return p - spec.learning_rate * ratio * change, (m, v)

    def _moments(self, g: jax.Array, memory: Any) -> tuple[jax.Array, jax.Array]:
        spec, (m, v) = self._spec, memory
        return spec.beta1 * m + (1 - spec.beta1) * g, spec.beta2 * v + (1 - spec.beta2) * g * g


def _times_rate(scalars: Tensors, multiple: float) -> Tensors:
    """Return the scalars of a step for a tensor whose learning rate is multiplied: the step size among them is a rate."""
    return scalars if multiple == 1 or "rate" not in scalars else {**scalars, "rate": scalars["rate"] * multiple}
