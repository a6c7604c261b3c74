"""Changes of level: found where they are, silent where there are none, and never from one slow night of long ago."""

from __future__ import annotations

from math import log

import numpy as np
import pytest

from steelyard.statistics.shifts import Course, course

SCATTER = 0.02


def nights(seed: int, count: int = 30, change: float = 1.0, place: int = 0, heavy: bool = False) -> np.ndarray:
    """Return logarithms of the times of nights; from `place` on they are `change` times as long."""
    random = np.random.default_rng([seed, count])
    noise = random.standard_t(3, count) / np.sqrt(3) if heavy else random.normal(size=count)
    return SCATTER * noise + np.where(np.arange(count) >= place, log(change), 0.0)


@pytest.mark.parametrize("heavy", [False, True])
def test_of_200_histories_without_a_change_at_most_5_percent_have_one(heavy: bool) -> None:
    found = [course(nights(seed, heavy=heavy), 0.05) for seed in range(200)]
    assert sum(bool(each.shifts) for each in found) <= 10
    assert sum(bool(each.against_best and each.against_best.low > 1.05) for each in found) <= 1


def test_of_200_short_histories_without_a_change_at_most_5_percent_have_one() -> None:
    assert sum(bool(course(nights(seed, 8), 0.05).shifts) for seed in range(200)) <= 10


@pytest.mark.parametrize(("place", "at_least"), [(10, 20), (15, 20), (28, 17)])
def test_a_change_of_10_percent_is_found_where_it_is(place: int, at_least: int) -> None:
    """The last two nights alone are found most of the time, a change that is older always."""
    found = [course(nights(100 * place + seed, change=1.1, place=place), 0.05).shifts for seed in range(20)]
    there = [shift for shifts in found for shift in shifts if abs(shift.place - place) <= 1]
    assert len(there) >= at_least
    assert sum(each.ratio.low < 1.1 < each.ratio.high for each in there) >= at_least - 1
    assert sum(map(len, found)) - len(there) <= 3


def test_a_gain_is_found_as_well_and_is_never_slower() -> None:
    found = course(nights(1, change=0.9, place=20), 0.05)
    assert found.shifts[0].ratio.high < 1
    assert found.against_best
    assert found.against_best.high < 1


def test_one_slow_night_of_long_ago_is_no_change() -> None:
    series = nights(1)
    series[12] += log(1.5)
    assert course(series, 0.05) == Course()


def test_the_newest_night_alone_can_be_a_change() -> None:
    assert [each.place for each in course(nights(3, change=1.3, place=29), 0.05).shifts] == [29]


def test_two_small_steps_are_together_compared_with_the_best_level() -> None:
    series = nights(1, count=60)
    series[20:] += log(1.05)
    series[40:] += log(1.05)
    found = course(series, 0.05)
    assert [round(each.place, -1) for each in found.shifts] == [20, 40]
    assert found.against_best
    assert all(each.ratio.value < 1.07 for each in found.shifts)
    assert found.against_best.low > 1.07


def test_a_recovery_is_no_slow_down() -> None:
    series = nights(1, count=40)
    series[10:20] += log(1.2)
    found = course(series, 0.05)
    assert [each.place for each in found.shifts] == [10, 20]
    assert found.against_best
    assert found.against_best.low < 1.0 < found.against_best.high


def test_values_without_any_scatter_are_judged_as_if_they_had_some() -> None:
    assert course([1.0] * 10, 0.05) == Course()
    assert [each.place for each in course([1.0] * 10 + [1.1] * 10, 0.05).shifts] == [10]


@pytest.mark.parametrize("count", [0, 1, 2, 3])
def test_too_few_runs_say_nothing(count: int) -> None:
    assert course([0.0, 0.01, 0.05][:count], 0.05) == Course()


def test_a_smaller_error_needs_more_evidence() -> None:
    series = nights(5, change=1.03, place=15)
    assert course(series, 0.05).shifts
    assert not course(series, 1e-9).shifts


def test_the_same_history_has_the_same_changes_each_time() -> None:
    series = nights(2, change=1.04, place=15, heavy=True)
    assert course(series, 0.05) == course(series, 0.05)
