"""Numbers of an update rule that are computed on the host, the same way for every framework."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable

    from steelyard_worker.case import Optimizer


class StepScalars(NamedTuple):
    """The scalars that change from step to step: 1 - beta1^t, 1 - beta2^t, and the step size of the epsilon-hat form."""

    first: float
    second: float
    rate: float


class Part(NamedTuple):
    """Tensors with the same learning rate and weight decay: the rule for them alone, and what multiplies rates of a schedule."""

    rule: Optimizer
    rate: float
    names: tuple[str, ...]


def rate_at(rates: np.ndarray[Any, Any], step: int) -> float:
    """Return the learning rate of a step, counted from 0; the last one stays for further steps."""
    return float(rates[min(step, len(rates) - 1)])


def per_unit(spec: Optimizer) -> Optimizer:
    """Return the rule with a learning rate of 1, to be multiplied by the rate of each step."""
    return replace(spec, learning_rate=1.0)


def rates_of(spec: Optimizer) -> tuple[Any, Any]:
    """Return what SGD multiplies a gradient by before it enters the momentum, and what it multiplies the momentum by (P-38)."""
    return (spec.learning_rate, 1.0) if spec.form == "rate-in-momentum" else (1.0, spec.learning_rate)


def of_step(spec: Optimizer, t: int) -> StepScalars:
    """Return the scalars of step `t`, counted from 1, in the precision that the rule declares."""
    first, second = spec.corrections(t)
    return StepScalars(first, second, spec.learning_rate * math.sqrt(second) / first)


def parts(spec: Optimizer, names: Iterable[str]) -> list[Part]:
    """Return the tensors that share a learning rate and a weight decay, for optimizers that have one of each.

    First those that decay least. Without groups these are the tensors that do not decay, and those that do.
    """
    found: dict[tuple[float, float], list[str]] = {}
    for name in names:
        found.setdefault((spec.decay_of(name), spec.rate_of(name)), []).append(name)
    return [
        Part(_of_part(spec, rate, decay, found[decay, rate]), rate, tuple(found[decay, rate]))
        for decay, rate in sorted(found)
    ]


def _of_part(spec: Optimizer, rate: float, decay: float, names: list[str]) -> Optimizer:
    decayed = tuple(names) if decay else ()
    return replace(spec, learning_rate=spec.learning_rate * rate, weight_decay=decay, decay=decayed, groups=())


def rates_times(rates: np.ndarray[Any, Any] | None, multiple: float) -> np.ndarray[Any, Any] | None:
    """Return the rates of every step for tensors whose learning rate is multiplied, float64; the same array for 1."""
    return rates if rates is None or multiple == 1 else np.asarray(rates, np.float64) * multiple


def adam_constants(spec: Optimizer, dtype: Any = np.float32) -> tuple[float, float]:
    """Return the learning rate and epsilon with which a fused Adam kernel computes exactly the declared epsilon-hat form.

    Such kernels compute 1 - beta in the precision of the tensors (P-41). In float32 and for beta = 0.999 the second moment
    comes out 1.3e-5 too small, so every step would be 6e-6 too long: a hundred roundings. Both moments are linear in these
    weights, so a learning rate and an epsilon changed by as little cancel it. In float64 nothing changes.
    """
    first, second = (float(dtype(1) - dtype(beta)) / (1 - beta) for beta in (spec.beta1, spec.beta2))
    return spec.learning_rate * math.sqrt(second) / first, spec.epsilon * math.sqrt(second)
