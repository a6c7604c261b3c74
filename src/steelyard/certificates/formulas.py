"""The formulas of update rules in float64, with a bound of what rounding in a lower precision may change. Pure.

Every number carries its value and a bound of its error to first order: each operation passes on the errors of its operands and
adds one rounding of its result (a running error analysis: Higham, Accuracy and Stability of Numerical Algorithms, 2002, section
3.3). So the bound of a weight after many steps follows from the formula, the stored moments and the constants.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from steelyard_worker.case import Optimizer

Array = np.ndarray[Any, np.dtype[np.float64]]

# PyTorch divides by the norm of the gradients plus this number, other frameworks by less (P-44 of docs/parity.md).
CLIP_OFFSET = 1e-6


@dataclass(frozen=True)
class Rounded:
    """A number, or an array, that is computed with the unit roundoff `unit`; `error` bounds how far it is from `value`."""

    value: Any
    error: Any
    unit: float

    def __add__(self, other: Rounded) -> Rounded:
        return self._of(self.value + other.value, self.error + other.error)

    def __sub__(self, other: Rounded) -> Rounded:
        return self._of(self.value - other.value, self.error + other.error)

    def __mul__(self, other: Rounded) -> Rounded:
        error = np.abs(self.value) * other.error + np.abs(other.value) * self.error
        return self._of(self.value * other.value, error)

    def __truediv__(self, other: Rounded) -> Rounded:
        error = self.error / np.abs(other.value) + np.abs(self.value) * other.error / other.value**2
        return self._of(self.value / other.value, error)

    def sqrt(self) -> Rounded:
        """Return the square root; that of an exact zero is exact."""
        root = np.sqrt(self.value)
        return self._of(root, self.error / (2 * np.where(root > 0, root, 1)))

    def norm(self) -> Rounded:
        """Return the L2 norm of an array: a sum of n squares has n roundings, of which the root halves the relative size."""
        norm = float(np.linalg.norm(self.value))
        error = float(np.sum(np.abs(self.value) * self.error)) / norm if norm else 0.0
        return self._of(norm, error + np.size(self.value) / 2 * self.unit * norm)

    def _of(self, value: Any, error: Any) -> Rounded:
        return Rounded(value, error + self.unit * np.abs(value), self.unit)


@dataclass
class _Moments:
    first: Rounded
    second: Rounded


class Formula:
    """An update rule in the form that it declares, applied to tensors step by step.

    `start`: the weights of the trained tensors by name; `rates`: the learning rate of every step; `unit`: unit roundoff of the
    precision that the bounds are for.
    """

    def __init__(self, rule: Optimizer, start: Mapping[str, Array], rates: Sequence[float], unit: float) -> None:
        self._rule, self._rates, self._unit, self._t = rule, rates, unit, 0
        self._weights = {name: self._exact(array) for name, array in start.items()}
        self._moments = {
            name: _Moments(*(self._exact(np.zeros_like(each.value)) for _ in range(2)))
            for name, each in self._weights.items()
        }
        self._update = {"sgd": self._sgd, "lamb": self._lamb}.get(rule.name, self._adam)

    def steps(self, gradients: Sequence[Mapping[str, Array]]) -> Iterator[dict[str, Rounded]]:
        """Yield the weights after each step; `gradients`: of every trained tensor, step by step."""
        for given in gradients:
            rate, self._t = self._constant(self._rates[self._t]), self._t + 1
            for name, gradient in self._clipped(given).items():
                decay = self._constant(self._rule.decay_of(name))
                self._weights[name] = self._update(
                    self._weights[name], gradient, self._moments[name], decay, self._of_group(rate, name)
                )
            yield dict(self._weights)

    def _of_group(self, rate: Rounded, name: str) -> Rounded:
        """Return the rate of a tensor; one that its group multiplies is rounded once more."""
        multiple = self._rule.rate_of(name)
        return rate if multiple == 1 else rate * self._constant(multiple)

    def _exact(self, value: Any) -> Rounded:
        return Rounded(value, np.zeros_like(value), self._unit)

    def _constant(self, value: float) -> Rounded:
        """Return a constant, which is rounded once."""
        return Rounded(value, self._unit * abs(value), self._unit)

    def _complement(self, value: float) -> Rounded:
        """Return 1 - value, from a value that is rounded already."""
        return Rounded(1 - value, self._unit, self._unit)

    def _clipped(self, given: Mapping[str, Array]) -> dict[str, Rounded]:
        gradients = {name: self._exact(array) for name, array in given.items()}
        if not self._rule.clip:
            return gradients
        norm = self._exact(np.concatenate([array.ravel() for array in given.values()])).norm()
        if norm.value <= self._rule.clip:
            return gradients
        norm = Rounded(norm.value, norm.error + CLIP_OFFSET, self._unit)
        scale = self._constant(self._rule.clip) / norm
        return {name: gradient * scale for name, gradient in gradients.items()}

    def _sgd(self, p: Rounded, g: Rounded, moments: _Moments, decay: Rounded, rate: Rounded) -> Rounded:
        rule, momentum = self._rule, self._constant(self._rule.momentum)
        g = g + decay * p if decay.value else g
        inside = rule.form == "rate-in-momentum"
        g = rate * g if inside else g
        moments.first = momentum * moments.first + g
        change = g + momentum * moments.first if rule.nesterov else moments.first
        return p - (change if inside else rate * change)

    def _adam(self, p: Rounded, g: Rounded, moments: _Moments, decay: Rounded, rate: Rounded) -> Rounded:
        rule = self._rule
        if decay.value and rule.name == "adamw":
            p = p - rate * decay * p
        elif decay.value:
            g = g + decay * p
        self._move(moments, g)
        first, second = self._corrections()
        epsilon = self._constant(rule.epsilon)
        if rule.form == "canonical":
            return p - rate * (moments.first / first) / ((moments.second / second).sqrt() + epsilon)
        return p - rate * (second.sqrt() / first) * moments.first / (moments.second.sqrt() + epsilon)

    def _lamb(self, p: Rounded, g: Rounded, moments: _Moments, decay: Rounded, rate: Rounded) -> Rounded:
        self._move(moments, g)
        first, second = self._corrections()
        epsilon = self._constant(self._rule.epsilon)
        change = (moments.first / first) / ((moments.second / second).sqrt() + epsilon) + decay * p
        norm, other = p.norm(), change.norm()
        ratio = norm / other if norm.value > 0 and other.value > 0 else self._constant(1.0)
        return p - rate * ratio * change

    def _move(self, moments: _Moments, g: Rounded) -> None:
        rule = self._rule
        moments.first = self._constant(rule.beta1) * moments.first + self._complement(rule.beta1) * g
        moments.second = self._constant(rule.beta2) * moments.second + self._complement(rule.beta2) * g * g

    def _corrections(self) -> tuple[Rounded, Rounded]:
        """Return 1 - beta^t for both moments; powers that a rule computes in float32 are off by up to two roundings."""
        powers = (self._rule.beta1**self._t, self._rule.beta2**self._t)
        single = 2 * self._unit if self._rule.correction == "float32" else 0.0
        first, second = (
            Rounded(value, self._unit * value + single * power, self._unit)
            for value, power in zip(self._rule.corrections(self._t), powers, strict=True)
        )
        return first, second
