"""Compare what an update rule made of a few tensors by itself with its formula, element by element and step by step. Pure."""

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

# Kernels compute a formula in another order, or with constants that are combined and rounded once more, so their roundings are
# others than those of the formula as it is written in `formulas`; more by no more than this factor.
ORDERS = 2.0


@dataclass(frozen=True)
class Difference:
    """The first step after which a tensor is not what the formula says.

    `part`: with which constants (`rules.OWN` or `rules.STRONG`). `share`: size of the error as a part of the change since the
    start, over the elements that differ; infinite where the formula does not change them. `trained`: whether the tensor is.
    `clipped`: whether the gradients of this step are clipped, and those of all steps before are not.
    """

    part: str
    tensor: str
    step: int
    share: float
    trained: bool = True
    clipped: bool = False


@dataclass(frozen=True)
class RuleJudgement:
    """Whether an update rule by itself is its formula. `worst`: largest error of an element as a part of its limit."""

    passed: bool
    sentence: str
    steps: int
    worst: float


def judge_rule(
    rule: Optimizer, weights: Tensors, given: Tensors, rates: Array | None, found: Tensors, unit: float
) -> RuleJudgement:
    """Return the judgement of what `steelyard_worker.rules.dump` has saved.

    `rule`: in the form that is declared, as a reference computes it. `weights`: of the start; `given`: the inputs of all steps;
    `rates`: of every step, float32, None for a constant rate. `unit`: unit roundoff of the precision.
    """
    if name := _unusable(weights, found):
        return RuleJudgement(False, rule_sentences.unusable(rule, name), 0, math.inf)
    gradients = rule_inputs.gradients(given)
    stronger, factor = rules.strong(rule)
    worst, differences = 0.0, list[Difference]()
    for part, own, scale in ((rules.OWN, rule, 1.0), (rules.STRONG, stronger, factor)):
        formula = Formula(own, {name: _exact(weights[name]) for name in gradients[0]}, _rates(own, rates, scale), unit)
        states = {name: found[f"{part}/{name}"] for name in weights}
        compared = list(_compared(formula, gradients, weights, states))
        worst = max([worst, *(share for *_, share, _ in compared)])
        differences += _first(part, compared, gradients, own.clip)
    if not differences:
        return RuleJudgement(True, "", rules.STEPS, worst)
    return RuleJudgement(False, rule_sentences.different(rule, min(differences, key=lambda each: each.step)), 0, worst)


def _unusable(weights: Tensors, found: Tensors) -> str:
    """Name the first tensor that was not saved, or does not begin with its weights; empty where there is none."""
    for part in (rules.OWN, rules.STRONG):
        for name, start in weights.items():
            array = found.get(f"{part}/{name}")
            if array is None or array.shape != (rules.STEPS + 1, *start.shape) or not np.array_equal(array[0], start):
                return name
    return ""


def _exact(array: Array) -> Array:
    return np.asarray(array, np.float64)


def _rates(rule: Optimizer, rates: Array | None, scale: float) -> Sequence[float]:
    """Return the rate of every step; those of a schedule are rounded to float32 after they are multiplied, as in the worker."""
    if rates is None:
        return [rule.learning_rate] * rules.STEPS
    return [float(rate) for rate in np.asarray(rates, np.float32) * np.float32(scale)]


def _compared(
    formula: Formula, gradients: Sequence[Tensors], weights: Tensors, states: Tensors
) -> Iterator[tuple[int, str, float, float]]:
    """Yield (step, tensor, largest error by its limit, error by the change since the start) of every step and tensor."""
    for step, expected in enumerate(formula.steps(gradients), 1):
        for name, array in weights.items():
            start = _exact(array)
            own = expected.get(name, Rounded(start, np.zeros_like(start), 0.0))
            yield step, name, *_errors(_exact(states[name][step]), own, start)


def _errors(saved: Array, expected: Rounded, start: Array) -> tuple[float, float]:
    error, limit = np.abs(saved - expected.value), ORDERS * expected.error
    with np.errstate(divide="ignore", invalid="ignore"):
        shares = np.where(error == 0, 0.0, error / limit)
    shares = np.where(np.isnan(shares), math.inf, shares)
    beyond = shares > 1
    change = float(np.linalg.norm((expected.value - start)[beyond]))
    size = float(np.linalg.norm(error[beyond]))
    return float(shares.max()), size / change if change else math.inf if size else 0.0


def _first(
    part: str, compared: Sequence[tuple[int, str, float, float]], gradients: Sequence[Tensors], clip: float
) -> list[Difference]:
    """Return the first step that differs, with its tensor that differs most; empty where none does."""
    beyond = [each for each in compared if each[2] > 1]
    if not beyond:
        return []
    step, name, _, share = max(beyond, key=lambda each: (-each[0], each[2]))
    norms = [math.sqrt(sum(float(np.sum(g**2)) for g in each.values())) for each in gradients[:step]]
    clipped = bool(clip) and norms[-1] > clip and max(norms[:-1], default=0.0) <= clip
    return [Difference(part, name, step, share, name in gradients[0], clipped)]
