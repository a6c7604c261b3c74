"""Pairs that a plan names have at least half of the error: their power, and the error of all pairs together."""

from __future__ import annotations

from itertools import combinations
from math import log, sqrt
from typing import TYPE_CHECKING

import numpy as np
import pytest
from scipy.stats import binom

from steelyard.statistics import looks
from steelyard.statistics.decision import decide
from steelyard.statistics.decision_plan import PLANNED_SHARE, DecisionPlan
from steelyard.statistics.simulation import simulate

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from steelyard.statistics.simulation import Outcome

# Two frameworks with one process and five strategies each: ten of 66 pairs are planned.
NAMES = tuple(f"{framework}{place}" for framework in "ab" for place in range(6))
PAIRS = list(combinations(NAMES, 2))
STARS = frozenset(frozenset((name[0] + "0", name)) for name in NAMES if not name.endswith("0"))
PLAN, UNPLANNED = DecisionPlan(planned=STARS), DecisionPlan()
IS_PLANNED = np.array([frozenset(pair) in STARS for pair in PAIRS])


def noise(families: int, scatter: float, seed: int = 1) -> NDArray[np.float64]:
    """Return the logarithms of equal contenders; `scatter`: standard deviation of a log ratio."""
    return np.random.default_rng(seed).normal(0, scatter / sqrt(2), size=(families, len(NAMES), 12))


def holds(wrong: NDArray[np.bool_]) -> bool:
    """Return whether the number of wrong families is one that a rate of 5 % explains (99.9 %)."""
    return bool(wrong.sum() <= binom.ppf(0.999, wrong.size, 0.05))


def judged(values: NDArray[np.float64], truth: NDArray[np.float64], plan: DecisionPlan) -> Outcome:
    return simulate(values + truth[:, None], truth, plan, NAMES)


def test_planned_pairs_have_half_of_the_error_and_the_others_the_other_half() -> None:
    weights = PLAN.weights(NAMES)
    assert weights.sum() == pytest.approx(1)
    assert weights[IS_PLANNED] == pytest.approx(PLANNED_SHARE / 10)
    assert weights[~IS_PLANNED] == pytest.approx((1 - PLANNED_SHARE) / 56)


def test_planned_pairs_never_have_less_than_others() -> None:
    plan = DecisionPlan(planned=frozenset({frozenset("ab"), frozenset("ac")}))
    assert plan.weights(("a", "b", "c")) == pytest.approx([1 / 3] * 3)


@pytest.mark.parametrize("names", [(), ("a",), ("a", "b"), ("x", "y", "z")])
def test_where_all_pairs_or_none_are_planned_all_have_the_same(names: tuple[str, ...]) -> None:
    plan = DecisionPlan(planned=frozenset({frozenset("ab")}))
    pairs = len(names) * (len(names) - 1) // 2
    assert plan.weights(names) == pytest.approx([1 / max(1, pairs)] * pairs)


def test_the_intervals_of_planned_pairs_are_narrower_and_those_of_the_others_little_wider() -> None:
    draw = np.random.default_rng(2)
    rounds = {name: {number: 10 * (1 + 0.1 * draw.random()) for number in (1, 2, 3)} for name in NAMES}
    ruled, usual = decide(rounds, PLAN), decide(rounds, UNPLANNED)
    ratios: dict[bool, list[float]] = {True: [], False: []}
    for a, b in PAIRS:
        one, other = ruled.between(a, b), usual.between(a, b)
        assert one is not None
        assert other is not None
        assert one.ratio == other.ratio
        is_planned = frozenset((a, b)) in STARS
        ratios[is_planned].append(log(one.high / one.low) / log(other.high / other.low))
        assert (one.joint_high < other.joint_high) is is_planned
    assert 0.6 < max(ratios[True]) < 0.8
    assert 1.05 < max(ratios[False]) < 1.2


def test_a_planned_difference_is_found_sooner() -> None:
    truth = np.zeros(len(NAMES))
    truth[[1, 7]] = log(1.1)
    pair = PAIRS.index(("a0", "a1"))
    found = []
    for plan in (PLAN, UNPLANNED):
        rounds = judged(noise(150, 0.02), truth, plan).different_from[:, pair]
        found.append(float(((rounds > 0) & (rounds <= 3)).mean()))
    assert found[0] > found[1] + 0.2


@pytest.mark.parametrize("scatter", [0.008, 0.09])
def test_equal_contenders_are_called_different_in_at_most_one_family_of_twenty(scatter: float) -> None:
    assert holds(judged(noise(200, scatter), np.zeros(len(NAMES)), PLAN).false_difference)


def test_the_error_holds_for_processes_of_two_states() -> None:
    slow = 0.1 * np.random.default_rng(1).integers(0, 2, size=(400, len(NAMES), 12))
    assert holds(judged(slow + noise(400, 0.008), np.zeros(len(NAMES)), PLAN).false_difference)


def test_the_error_holds_where_all_planned_pairs_differ_and_leave_their_part_to_the_others() -> None:
    # The strategies of a framework are equal, and all differ from its single process.
    truth = np.array([0.0 if name.endswith("0") else 0.5 for name in NAMES])
    assert holds(judged(noise(200, 0.03), truth, PLAN).false_difference)


def test_without_holms_procedure_the_error_is_too_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(looks, "holm_errors", lambda p, error, weights: np.where(p <= error, error, np.nan))
    assert not holds(judged(noise(200, 0.09), np.zeros(len(NAMES)), PLAN).false_difference)
