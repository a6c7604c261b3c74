"""Compare what an update rule made of a few tensors by itself with its formula, element by element. Pure."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from steelyard.certificates import rule_inputs, rule_sentences
from steelyard.certificates.formulas import Formula, Rounded
from steelyard_worker import rules
from steelyard_worker.case import Optimizer

Array = np.ndarray[Any, Any]
Tensors = Mapping[str, Array]

# Kernels compute the formula in other orders, some with constants that are combined and rounded once more, so that the number of
# roundings differs; by no more than this factor.
ORDERS = 2.0


@dataclass(frozen=True)
class Difference:
    """A tensor that is not what the formula says, after the first step at which that shows.

    `part`: with which constants (`rules.OWN` or `rules.STRONG`); `share`: size of the error as a part of the tensor's change since the start,
    over the elements that differ; infinite where the formula changes none of them. `agreed`: the last step compared before, 0 if none.
    """

    part: str
    tensor: str
    step: int
    agreed: int
    share: float


@dataclass(frozen=True)
class RuleJudgement:
    """Whether an update rule by itself is its formula. `worst`: largest error of an element as a part of its limit."""

    passed: bool
    sentence: str
    steps: int
    worst: float


def judge_rule(
    rule: Optimizer, weights: Tensors, given: Tensors, rates: Sequence[float] | Array | None, found: Tensors, unit: float
) -> RuleJudgement:  # fmt: skip
    """Return the judgement of a dump of `steelyard_worker.rules`.

    `rule`: in the form that is declared, as a reference computes it. `given`: the inputs of all steps; `rates`: float32, of every
    step, None for a constant rate. `unit`: unit roundoff of the precision.
    """
    if missing := _missing(weights, found):
        return RuleJudgement(False, rule_sentences.missing(missing), 0, math.inf)
    gradients = rule_inputs.gradients(given)
    worst, differences = 0.0, []
    stronger, factor = rules.strong(rule)
    for part, own, scale in ((rules.OWN, rule, 1.0), (rules.STRONG, stronger, factor)):
        formula = Formula(own, _trained(weights, gradients), _rates(own, rates, scale), unit)
        shares = list(_shares(part, formula, weights, gradients, found))
        worst = max([worst, *(share for *_, share, _ in shares)])
        differences += _first_difference(part, shares)
    if differences:
        first = min(differences, key=lambda each: each.step)
        return RuleJudgement(False, rule_sentences.different(rule, first), 0, worst)
    return RuleJudgement(True, "", rules.STEPS, worst)


def _missing(weights: Tensors, found: Tensors) -> str:
    """Name the first tensor that was not saved, or not with the right shape or start; empty where there is none."""
    for part in (rules.OWN, rules.STRONG):
        for step in (0, *rules.SAVED):
            for name, start in weights.items():
                array = found.get(f"{part}/after{step}/{name}")
                if array is None or array.shape != start.shape or (step == 0 and not np.array_equal(array, start)):
                    return name
    return ""


def _trained(weights: Tensors, gradients: Sequence[Tensors]) -> dict[str, Array]:
    return {name: np.asarray(weights[name], np.float64) for name in gradients[0]}


def _rates(rule: Optimizer, rates: Sequence[float] | Array | None, scale: float) -> Sequence[float]:
    """Return the rate of every step; those of a schedule are rounded to float32 after they are multiplied, as in the worker."""
    if rates is None:
        return [rule.learning_rate] * rules.STEPS
    return [float(rate) for rate in np.asarray(rates, np.float32) * np.float32(scale)]


def _shares(
    part: str, formula: Formula, weights: Tensors, gradients: Sequence[Tensors], found: Tensors
) -> Iterator[tuple[int, str, float, float]]:
    """Yield (step, tensor, largest error by its limit, error by the change since the start) of every tensor that was saved."""
    for step, expected in enumerate(formula.steps(gradients), 1):
        if step not in rules.SAVED:
            continue
        for name, start in weights.items():
            saved = np.asarray(found[f"{part}/after{step}/{name}"], np.float64)
            own = expected.get(name, Rounded(np.asarray(start, np.float64), np.zeros(start.shape), 0.0))
            yield step, name, *_compared(saved, own, np.asarray(start, np.float64))


def _compared(saved: Array, expected: Rounded, start: Array) -> tuple[float, float]:
    error, limit = np.abs(saved - expected.value), ORDERS * expected.error
    with np.errstate(divide="ignore", invalid="ignore"):
        shares = np.where(error == 0, 0.0, error / limit)
    shares = np.where(np.isnan(shares), math.inf, shares)
    beyond = shares > 1
    change = float(np.linalg.norm((expected.value - start)[beyond]))
    size = float(np.linalg.norm(error[beyond]))
    return float(shares.max()), size / change if change else math.inf if size else 0.0


def _first_difference(part: str, shares: Sequence[tuple[int, str, float, float]]) -> list[Difference]:
    """Return the first step that differs, and its tensor that differs most."""
    beyond = [(step, name, share, size) for step, name, share, size in shares if share > 1]
    if not beyond:
        return []
    first = min(step for step, *_ in beyond)
    _, name, _, size = max((each for each in beyond if each[0] == first), key=lambda each: each[2])
    agreed = max((step for step in rules.SAVED if step < first), default=0)
    return [Difference(part, name, first, agreed, size)]
