"""The golden values of update rules are those of the formulas, in float64."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from checks import golden_updates as golden

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from steelyard_worker.case import Optimizer

CONSTANT = (0.1, 0.1, 0.1)
CHANGING = (0.1, 0.02, 0.02)


def momentum(rule: Optimizer, rates: Sequence[float]) -> Iterator[float]:
    """Yield p after each gradient. Rate in momentum: each gradient keeps the rate of its own step."""
    p, m = 1.0, 0.0
    for rate, gradient in zip(rates, golden.GRADIENTS, strict=True):
        g = gradient + rule.weight_decay * p
        if rule.form == "rate-in-momentum":
            m = rule.momentum * m + rate * g
            p -= m
        else:
            m = rule.momentum * m + g
            p -= rate * (g + rule.momentum * m if rule.nesterov else m)
        yield p


def adam(rule: Optimizer, rates: Sequence[float]) -> Iterator[float]:
    """Yield p after each gradient. Epsilon-hat: the corrections multiply the rate, so that epsilon is not corrected."""
    p, m, v = 1.0, 0.0, 0.0
    for t, (rate, gradient) in enumerate(zip(rates, golden.GRADIENTS, strict=True), 1):
        decoupled = rule.weight_decay if rule.name == "adamw" else 0.0
        g = gradient + (rule.weight_decay - decoupled) * p
        m += (1 - rule.beta1) * (g - m)
        v += (1 - rule.beta2) * (g * g - v)
        first, second = 1 - rule.beta1**t, 1 - rule.beta2**t
        if rule.form == "epsilon-hat":
            update = math.sqrt(second) / first * m / (math.sqrt(v) + rule.epsilon)
        else:
            update = m / first / (math.sqrt(v / second) + rule.epsilon)
        p -= rate * (decoupled * p + update)
        yield p


@pytest.mark.parametrize(
    ("table", "form", "rates"),
    [
        (golden.CANONICAL, "canonical", CONSTANT),
        (golden.EPSILON_HAT, "epsilon-hat", CONSTANT),
        (golden.CANONICAL_AT_RATES, "canonical", CHANGING),
        (golden.EPSILON_HAT_AT_RATES, "epsilon-hat", CHANGING),
        (golden.RATE_IN_MOMENTUM_AT_RATES, "rate-in-momentum", CHANGING),
    ],
)
def test_golden_values_are_those_of_the_formulas(
    table: Mapping[Optimizer, Sequence[float]], form: str, rates: Sequence[float]
) -> None:
    for rule, expected in table.items():
        formula = momentum if rule.name == "sgd" else adam
        found = list(formula(replace(rule, form=form), rates))
        assert found == pytest.approx(expected, abs=6e-8), rule


def test_changing_rates_are_those_of_the_checks() -> None:
    assert [*map(float, golden.RATES), float(golden.RATES[-1])] == pytest.approx(CHANGING)
