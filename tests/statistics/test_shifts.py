"""Changes of level: found where they are, silent where there are none, and never from one or two slow nights."""

from __future__ import annotations

from math import log

import numpy as np
import pytest
from simulated_histories import KINDS, SCATTER, creep, is_slower, looks, noise

from steelyard.statistics import shifts
from steelyard.statistics.shifts import MEMORY, STABLE, Course, course


def nights(seed: int, count: int = 30, change: float = 1.0, place: int = 0) -> np.ndarray:
    """Return logarithms of the times of nights; from `place` on they are `change` times as long."""
    return noise("normal", count, seed) + np.where(np.arange(count) >= place, log(change), 0.0)


@pytest.mark.parametrize("kind", KINDS)
def test_of_histories_without_a_change_that_are_looked_at_each_night_hardly_any_has_one(kind: str) -> None:
    """A look at each of 100 nights; with an error of 5 % for each look, a third of these histories have a change at some look."""
    found = [any(each.shifts or each.creep for each in looks(noise(kind, 100, seed))) for seed in range(12)]
    assert sum(found) == 0


def test_the_error_is_shared_by_the_looks() -> None:
    series = nights(5, change=1.03, place=15)
    assert course(series, 0.05, looks=1).shifts
    assert not course(series, 0.05, looks=10**6).shifts


def test_a_change_is_found_in_a_history_of_many_lines() -> None:
    """The lines share the error: each of 100 has a hundredth of it."""
    assert course(nights(1, count=60, change=1.3, place=30), 0.05 / 100).shifts


@pytest.mark.parametrize(("place", "at_least"), [(10, 20), (15, 20), (25, 19), (26, 17)])
def test_a_change_of_10_percent_is_found_where_it_is(place: int, at_least: int) -> None:
    """The last four nights alone are found most of the time, a change that is older always."""
    found = [course(nights(100 * place + seed, change=1.1, place=place), 0.05).shifts for seed in range(20)]
    there = [shift for each in found for shift in each if abs(shift.place - place) <= 1]
    assert len(there) >= at_least
    assert sum(each.ratio.low < 1.1 < each.ratio.high for each in there) >= at_least - 1
    assert sum(map(len, found)) - len(there) <= 3


def test_a_gain_is_found_as_well_and_is_never_slower() -> None:
    found = course(nights(1, change=0.9, place=20), 0.05)
    assert found.shifts[0].ratio.high < 1
    assert found.reference
    assert found.reference.ratio.high < 1


@pytest.mark.parametrize("place", [12, 28, 29])
def test_one_slow_night_is_no_change(place: int) -> None:
    series = nights(1)
    series[place] += log(1.5)
    assert course(series, 0.05) == Course()


def test_of_three_nights_one_that_is_very_slow_makes_no_level() -> None:
    """The mean of the three is 33 % slower, their median is not."""
    series = nights(2, count=200)
    series[198] += log(2.4)
    assert not course(series, 0.05).shifts


def test_two_small_steps_are_together_compared_with_the_level_before() -> None:
    """A slow-down does not become the reference by itself, however long it lasts within the memory."""
    series = nights(1, count=60)
    series[20:] += log(1.05)
    series[40:] += log(1.05)
    found = course(series, 0.05)
    assert [round(each.place, -1) for each in found.shifts] == [20, 40]
    assert found.reference
    assert all(each.ratio.value < 1.07 for each in found.shifts)
    assert found.reference.start == 0
    assert found.reference.ratio.low > 1.05


def test_a_recovery_is_no_slow_down() -> None:
    series = nights(1, count=40)
    series[10:20] += log(1.2)
    found = course(series, 0.05)
    assert [each.place for each in found.shifts] == [10, 20]
    assert found.reference
    assert found.reference.ratio.low < 1.0 < found.reference.ratio.high


def test_after_a_lucky_week_the_usual_level_is_no_slow_down() -> None:
    """Seven nights were 15 % faster; the comparison goes on with the weeks before them."""
    series = nights(3, count=60)
    series[20:27] -= log(1.15)
    found = course(series, 0.05)
    assert [each.place for each in found.shifts] == [20, 27]
    assert found.shifts[1].ratio.low > 1.05
    assert found.reference
    assert (found.reference.start, found.reference.end) == (0, 20)
    assert not is_slower(found)


def test_a_level_of_more_than_a_week_is_a_reference_until_it_is_forgotten() -> None:
    series = nights(4, count=20 + STABLE + MEMORY + 1)
    series[20 : 20 + STABLE] -= log(1.3)
    at = {age: course(series[: 20 + STABLE + age], 0.05) for age in (10, MEMORY, MEMORY + 1)}
    assert [is_slower(at[age]) for age in at] == [True, True, False]
    assert at[MEMORY + 1].shifts, "the change is still shown"


def test_an_accepted_level_is_the_reference_however_short_and_no_other_before_it() -> None:
    series = nights(5, count=50)
    series[20:] += log(1.2)
    series[45:] += log(1.2)
    assert is_slower(course(series[:40], 0.05))
    assert not is_slower(course(series[:40], 0.05, accepted=24))
    again = course(series, 0.05, accepted=24)
    assert again.reference
    assert (again.reference.start, again.reference.end) == (20, 45)
    assert again.reference.ratio.value == pytest.approx(1.2, rel=0.03)
    assert is_slower(again)
    assert not is_slower(course(series, 0.05, accepted=47))
    assert course(series, 0.05, accepted=0).reference == course(series, 0.05).reference


def test_values_without_any_scatter_are_judged_as_if_they_had_some() -> None:
    assert course([1.0] * 10, 0.05) == Course()
    assert [each.place for each in course([1.0] * 10 + [1.1] * 10, 0.05).shifts] == [10]


@pytest.mark.parametrize("count", [0, 1, 2, 3, 5])
def test_too_few_runs_say_nothing(count: int) -> None:
    assert course([0.0, 0.01, 0.05, 0.5, 0.5][:count], 0.05) == Course()


def test_the_same_history_has_the_same_changes_each_time() -> None:
    series = noise("heavy tails", 60, 2) + np.where(np.arange(60) >= 30, log(1.1), 0)
    assert course(series, 0.05) == course(series, 0.05)


# Creeps.


@pytest.mark.parametrize("start", [0, 60])
def test_a_creep_of_half_a_percent_a_week_has_its_rate_and_its_beginning(start: int) -> None:
    count = start + 26 * 7
    found = [course(noise("normal", count, seed) + creep(count, start, 1.005), 0.05) for seed in range(20)]
    creeping = [each.creep for each in found if each.creep]
    assert len(creeping) == 20
    assert sum(each.weekly.low < 1.005 < each.weekly.high for each in creeping) >= 19
    assert sum(abs(each.place - start) <= 28 for each in creeping) >= 18
    assert all(is_slower(each) for each in found), "it is 14 % altogether"
    assert sum(bool(each.shifts) for each in found) <= 2, "a creep is no staircase"


def test_a_creep_to_faster_times_is_no_slow_down() -> None:
    found = course(nights(1, count=150) + creep(150, 0, 0.995), 0.05)
    assert found.creep
    assert found.creep.weekly.high < 1
    assert not is_slower(found)


def test_a_creep_after_a_step_has_both() -> None:
    series = nights(2, count=220, change=0.8, place=50) + creep(220, 80, 1.006)
    found = course(series, 0.05)
    assert [each.place for each in found.shifts] == [50]
    assert found.creep
    assert abs(found.creep.place - 80) <= 28


@pytest.mark.parametrize("place", [50, 100, 150])
def test_a_step_is_no_creep(place: int) -> None:
    found = [course(nights(seed, count=200, change=1.05, place=place), 0.05) for seed in range(20)]
    assert not any(each.creep for each in found)
    assert all(any(abs(shift.place - place) <= 5 for shift in each.shifts) for each in found)


def test_an_accepted_creep_counts_from_that_run_on() -> None:
    series = nights(6, count=150) + creep(150, 0, 1.006)
    whole, since = (course(series, 0.05, accepted=each) for each in (None, 140))
    assert whole.creep
    assert since.creep
    assert since.creep.weekly == whole.creep.weekly
    assert is_slower(whole)
    assert not is_slower(since)


def test_a_creep_is_by_the_calendar_and_not_by_the_number_of_runs() -> None:
    """Only every third night was measured."""
    days = np.arange(0, 180, 3)
    series = noise("normal", len(days), 1) + creep(180, 0, 1.01)[days]
    found = course(series, 0.05, days.tolist())
    assert found.creep
    assert found.creep.weekly.low < 1.01 < found.creep.weekly.high


def test_six_weeks_are_the_least_of_a_creep() -> None:
    steep = nights(7, count=40) + creep(40, 0, 1.05)
    assert not course(steep, 0.05).creep
    assert shifts.course(steep, 0.05, np.arange(40) * 2.0).creep


def test_the_scatter_of_the_simulation_is_what_it_says() -> None:
    assert [float(noise(kind, 200_000, 1).std()) for kind in KINDS] == pytest.approx([SCATTER] * 3, rel=0.05)
