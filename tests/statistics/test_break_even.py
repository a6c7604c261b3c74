"""When a contender that starts slowly has overtaken another: intervals, and who is first by length of the job."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from steelyard.statistics.break_even import JobTime, break_even, mean, soonest
from steelyard.statistics.intervals import student_quantile


def rounds(*times: tuple[float, float]) -> dict[int, JobTime]:
    return {number: JobTime(*each) for number, each in enumerate(times, 1)}


def test_a_slow_start_pays_when_what_it_saves_has_made_up_for_it() -> None:
    found = break_even(rounds((1100, 8), (1100, 8)), rounds((100, 10), (100, 10)))
    assert found is not None
    assert (found.steps, found.low, found.high, found.rounds) == (500, pytest.approx(500), pytest.approx(500), 2)


def test_what_is_not_faster_per_step_never_overtakes() -> None:
    found = break_even(rounds((1100, 10), (1100, 10.5)), rounds((100, 8), (100, 8.4)))
    assert found is not None
    assert math.isinf(found.steps)
    assert math.isinf(found.low)


def test_a_saving_within_the_noise_has_no_last_number_of_steps() -> None:
    found = break_even(rounds((1000, 9), (1010, 11), (990, 10)), rounds((100, 10), (100, 10), (100, 11)))
    assert found is not None
    assert 0 < found.low < found.steps < math.inf
    assert math.isinf(found.high)


def test_a_start_within_the_noise_may_have_paid_from_the_beginning() -> None:
    found = break_even(rounds((100, 8), (130, 8), (115, 8)), rounds((110, 10), (100, 10), (110, 10)))
    assert found is not None
    assert found.low == 0
    assert found.steps < found.high < math.inf


def test_equal_starts_are_overtaken_at_once() -> None:
    found = break_even(rounds((100, 8), (100, 8)), rounds((100, 10), (100, 10)))
    assert found is not None
    assert (found.steps, found.low, found.high) == (0, 0, 0)


def test_one_common_round_or_an_earlier_start_says_nothing() -> None:
    assert break_even(rounds((1000, 8)), rounds((100, 10), (100, 10))) is None
    assert break_even(rounds((100, 8), (100, 8)), rounds((1000, 10), (1000, 10))) is None


noise = st.tuples(st.floats(-300, 300), st.floats(-1, 1))


@given(st.lists(st.tuples(noise, noise), min_size=2, max_size=8), st.floats(0, 2000), st.floats(0, 6))
def test_the_interval_holds_the_steps_that_a_paired_test_does_not_refuse(
    drawn: list[tuple[tuple[float, float], tuple[float, float]]], late: float, saved: float
) -> None:
    slow = rounds(*[(500 + late + x, 10 - saved + y) for (x, y), _ in drawn])
    soon = rounds(*[(500 + x, 10 + y) for _, (x, y) in drawn])
    found = break_even(slow, soon)
    if found is None:
        return
    assert found.low <= found.high
    assert math.isinf(found.steps) or found.low <= found.steps * (1 + 1e-6) + 1e-6
    assert math.isinf(found.steps) or found.steps <= found.high * (1 + 1e-6) + 1e-6
    for steps in np.geomspace(0.1, 1e5, 60):
        gaps = [slow[number].after(steps) - soon[number].after(steps) for number in slow]
        error = np.std(gaps, ddof=1) / math.sqrt(len(gaps))
        refused = abs(np.mean(gaps)) > student_quantile(0.975, len(gaps) - 1) * error * (1 + 1e-6) + 1e-6
        if not refused:
            assert found.low * (1 - 1e-3) - 1e-3 <= steps <= found.high * (1 + 1e-3) + 1e-3


def test_the_interval_misses_the_truth_in_5_of_100_runs() -> None:
    draw, missed, trials = np.random.default_rng(7), 0, 2000
    for _ in range(trials):
        slow = rounds(*zip(draw.normal(1100, 60, 5), draw.normal(8, 0.3, 5), strict=True))
        soon = rounds(*zip(draw.normal(100, 10, 5), draw.normal(10, 0.3, 5), strict=True))
        found = break_even(slow, soon)
        assert found is not None
        missed += not found.low <= 500 <= found.high
    assert 0.035 <= missed / trials <= 0.065


def test_who_is_done_first_depends_on_the_length_of_the_job() -> None:
    times = {
        "eager": JobTime(100, 10),
        "compiled": JobTime(1100, 8),
        "slow": JobTime(2000, 9),
        "large": JobTime(9100, 6),
    }
    assert soonest(times) == [(1, "eager"), (501, "compiled"), (4001, "large")]
    assert soonest({"only": JobTime(100, 10)}) == [(1, "only")]


def test_a_contender_that_is_first_for_less_than_a_step_is_left_out() -> None:
    assert soonest({"a": JobTime(0, 10), "b": JobTime(20.2, 8), "c": JobTime(42, 4.1)}) == [(1, "a"), (8, "c")]
    assert soonest({"a": JobTime(0, 10), "b": JobTime(20.2, 8), "c": JobTime(30.7, 7)}) == [(1, "a"), (11, "c")]


@given(
    st.dictionaries(
        st.text("abcdef", min_size=1), st.builds(JobTime, st.floats(0, 1e6), st.floats(0.1, 1e3)), min_size=1
    )
)
def test_the_first_is_the_first_at_every_length(times: dict[str, JobTime]) -> None:
    found = soonest(times)
    longest = 10 * found[-1][0]
    for (start, key), (end, _) in zip(found, [*found[1:], (longest, "")], strict=True):
        for steps in {start, (start + end) // 2, end - 1} - {start - 1}:
            best = min(each.after(steps) for each in times.values())
            assert times[key].after(steps) <= best * (1 + 1e-9) + 1e-6


def test_the_mean_is_over_the_rounds() -> None:
    assert mean(rounds((100, 10), (300, 20))) == JobTime(200, 15)
