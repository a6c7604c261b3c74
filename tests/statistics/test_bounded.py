"""Verdicts on values that are known to intervals: they hold wherever the values are, and are open where the intervals decide nothing."""

from __future__ import annotations

from math import inf

import pytest
from simulated_trainings import THRESHOLD, Truth

from steelyard.results import learning
from steelyard.statistics.bounded import decide_bounded
from steelyard.statistics.choice import combined_bounds
from steelyard.statistics.decision import DecisionPlan, decide

SEEDS = 5
PLAN = DecisionPlan.single_look(SEEDS)


def bounds(*ends: tuple[float, float]) -> dict[int, tuple[float, float]]:
    return dict(enumerate(ends))


def verdict(a: dict[int, tuple[float, float]], b: dict[int, tuple[float, float]]):
    """Return the verdict from intervals, of which the upper ends are the values; of an infinite one, the lower."""
    both = {"a": a, "b": b}
    values = {
        name: {seed: low if high == inf else high for seed, (low, high) in own.items()} for name, own in both.items()
    }
    found = decide_bounded(values, both, PLAN).between("a", "b")
    assert found
    return found


def around(value: float, width: float = 0.0) -> dict[int, tuple[float, float]]:
    return bounds(*((value * (1 + seed / 500) * (1 - width), value * (1 + seed / 500)) for seed in range(SEEDS)))


def test_without_intervals_the_verdict_is_the_usual_one() -> None:
    values = {
        "a": {seed: 1 + seed / 500 for seed in range(SEEDS)},
        "b": {seed: 2 + seed / 300 for seed in range(SEEDS)},
    }
    usual = decide(values, PLAN)
    assert (
        decide_bounded(
            values,
            {"a": {k: (v, v) for k, v in values["a"].items()}, "b": {k: (v, v) for k, v in values["b"].items()}},
            PLAN,
        )
        == usual
    )


@pytest.mark.parametrize(("width", "kind"), [(0.0, "better"), (0.4, "better"), (0.6, "undecided")])
def test_a_difference_holds_if_it_holds_for_the_nearest_ends(width: float, kind: str) -> None:
    found = verdict(around(1.0, width), around(2.0, width))
    assert found.kind == kind
    assert found.flipped().kind == {"better": "worse"}.get(kind, kind)
    assert found.low <= (1 - width) / 2
    assert found.high >= 1 / (2 * (1 - width))


def test_equality_holds_only_where_the_intervals_are_narrow() -> None:
    assert verdict(around(1.0), around(1.0)).kind == "equal"
    assert verdict(around(1.0, 0.2), around(1.0, 0.2)).kind == "undecided"


def test_a_value_without_an_upper_end_can_be_worse_and_never_better() -> None:
    missed = {**around(5.0), 2: (5.0, inf)}
    assert verdict(around(1.0), missed).kind == "better"
    assert verdict(missed, around(9.0)).kind == "undecided"
    assert verdict(missed, around(9.0)).joint_high == inf


def test_a_value_that_may_be_zero_leaves_others_undecided() -> None:
    early = bounds(*((0.0, 1 + seed / 500) for seed in range(SEEDS)))
    assert verdict(around(0.1), early).kind == "undecided"
    assert verdict(early, around(9.0)).kind == "better"


def test_combined_bounds_are_zero_or_infinite_where_one_is() -> None:
    both = {"a": bounds((1, 4), (0, 4), (1, inf)), "b": bounds((4, 4), (4, 4), (4, 9))}
    found = combined_bounds(both, {"a": 1, "b": 1})
    assert [found[seed] for seed in range(3)] == [pytest.approx(each) for each in ((2, 4), (0, 4), (2, inf))]


def test_equal_contenders_that_are_evaluated_at_other_times_are_not_called_different() -> None:
    """Both need the same time; one is evaluated every second, the other every four. By the times of evaluations alone, it is slower."""
    often, rarely = Truth(median_epochs=8.0, epochs=40, epoch_s=1.0), Truth(median_epochs=2.0, epochs=10, epoch_s=4.0)
    wrong = by_evaluations = 0
    for number in range(60):
        values, ends = {}, {}
        for name, truth in (("often", often), ("rarely", rarely)):
            found = learning.arrivals(truth.trainings(10, 1, number), [THRESHOLD], "seconds")
            values[name] = {seed: each.at for seed, each in found.items()}
            ends[name] = {seed: (each.earliest, each.latest) for seed, each in found.items()}
        plan = DecisionPlan.single_look(10)
        wrong += decide_bounded(values, ends, plan).verdicts[0].kind in ("better", "worse")
        by_evaluations += decide(values, plan).verdicts[0].kind in ("better", "worse")
    assert by_evaluations > 50
    assert wrong == 0
