"""When trainings reach a threshold: those that never do are censored, and times are known between evaluations only."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest
from simulated_trainings import Truth, covers_curve, covers_median, covers_share

from steelyard.statistics.curves import coverage, spread
from steelyard.statistics.survival import Arrival, Median, first_at, over_rounds, over_thresholds, share_arrived

TIMES = st.lists(st.tuples(st.integers(1, 20), st.booleans()), min_size=1, max_size=12)


def arrivals(*values: tuple[float, bool]) -> list[Arrival]:
    """Return trainings that were evaluated at every whole place."""
    return [Arrival(at, arrived, at - 1 if arrived else at) for at, arrived in values]


def test_without_censoring_it_is_the_share_that_has_arrived() -> None:
    found = share_arrived(arrivals((3, True), (1, True), (2, True), (3, True)))
    assert found.places == (0, 1, 2, 3)
    assert found.shares == pytest.approx((0, 0.25, 0.5, 1))
    assert (found.runs, found.arrived) == (4, 4)
    assert found.median
    assert (found.median.earliest, found.median.latest) == (1, 2)


def test_a_run_that_ended_early_counts_as_long_as_it_lasted() -> None:
    """Kaplan and Meier by hand: at 1, one of 4 arrives; one leaves at 2; at 3, one of the 2 that are left arrives."""
    found = share_arrived(arrivals((1, True), (2, False), (3, True), (4, False)))
    at = dict(zip(found.places, found.shares, strict=True))
    assert at[1] == pytest.approx(1 - 3 / 4)
    assert at[3] == pytest.approx(1 - 3 / 4 * 1 / 2)
    assert found.median
    assert found.median.latest == 3
    assert found.arrived == 2


def test_where_no_run_arrives_there_is_no_median_and_no_warning() -> None:
    found = share_arrived(arrivals((5, False), (5, False)))
    assert set(found.shares) == {0}
    assert (found.median, found.arrived, found.runs) == (None, 0, 2)
    assert found.low[-1] == 0
    assert found.high[-1] == pytest.approx(1 - 0.025**0.5), "two of two had not arrived until then"


def test_no_runs_have_no_share() -> None:
    with pytest.raises(ValueError, match="no trainings"):
        share_arrived([])


@given(TIMES)
def test_the_share_rises_within_its_interval(values: list[tuple[int, bool]]) -> None:
    found = share_arrived(arrivals(*values))
    assert list(found.shares) == sorted(found.shares)
    assert all(0 <= share <= 1 for share in found.shares)
    for low, share, high in zip(found.low, found.shares, found.high, strict=True):
        assert 0 <= low <= share + 1e-12
        assert share <= high + 1e-12 <= 1 + 1e-11
    assert found.arrived == sum(arrived for _, arrived in values)


def test_the_interval_of_the_share_reaches_from_what_is_certain_to_what_is_possible() -> None:
    """Clopper and Pearson of three trainings: by 4 one has arrived for certain, and two may have."""
    found = share_arrived(
        [Arrival(4, arrived=True, after=2), Arrival(8, arrived=True, after=4), Arrival(3, arrived=False)]
    )
    at = {place: (low, high) for place, low, high in zip(found.places, found.low, found.high, strict=True)}
    exact = [binomtest(number, 3).proportion_ci(0.95) for number in range(4)]
    assert at[4] == pytest.approx((exact[1].low, exact[3].high))
    assert at[3] == pytest.approx((exact[0].low, exact[1].high))


@pytest.mark.parametrize(("count", "ends"), [(5, (0, math.inf)), (6, (0, 6))])
def test_the_median_of_six_trainings_has_an_interval_with_both_ends_and_that_of_five_has_not(count: int, ends) -> None:
    found = share_arrived(arrivals(*((place, True) for place in range(1, count + 1))))
    assert found.median == Median(2, 3, *ends)


def test_four_of_five_that_arrive_have_a_time_and_the_fifth_counts_as_longer() -> None:
    found = share_arrived(arrivals((2, True), (3, True), (4, True), (5, True), (9, False)))
    assert (found.arrived, found.runs) == (4, 5)
    assert found.median
    assert (found.median.earliest, found.median.latest) == (3, 4)
    assert found.shares[-1] == pytest.approx(0.8)


def test_the_mean_over_thresholds_is_taken_training_by_training() -> None:
    both = over_thresholds([Arrival(2, arrived=True, after=1), Arrival(6, arrived=True, after=5)])
    assert both == Arrival(4, arrived=True, after=3)
    missed = over_thresholds([Arrival(2, arrived=True, after=1), Arrival(9, arrived=False, after=9)])
    assert (missed.earliest, missed.latest) == (5, math.inf)
    assert over_thresholds([both]) == both


def test_the_rounds_of_a_seed_are_one_training() -> None:
    rounds = [Arrival(4, arrived=True, after=3), Arrival(6, arrived=True, after=5), Arrival(9, arrived=False, after=9)]
    assert over_rounds(rounds) == Arrival(6, arrived=True, after=5)
    most_missed = over_rounds([rounds[0], rounds[2], rounds[2]])
    assert (most_missed.earliest, most_missed.latest) == (9, math.inf)


@pytest.mark.parametrize("seeds", [2, 5, 10])
@pytest.mark.parametrize("rounds", [1, 4])
def test_the_band_of_the_share_holds_the_truth_as_often_as_it_says(seeds: int, rounds: int) -> None:
    """With the rounds of a seed taken for trainings, or times for those of evaluations, it is far less often."""
    assert covers_share(Truth(), seeds, rounds, 300) >= 0.95


@pytest.mark.parametrize(("seeds", "rounds"), [(5, 3), (6, 1), (10, 3)])
def test_the_interval_of_the_median_holds_the_truth_as_often_as_it_says(seeds: int, rounds: int) -> None:
    assert covers_median(Truth(), seeds, rounds, 300) >= 0.95


@pytest.mark.parametrize("rounds", [1, 4])
@pytest.mark.parametrize("seeds", [5, 6, 12])
def test_the_band_of_a_learning_curve_holds_the_median_as_often_as_it_says(seeds: int, rounds: int) -> None:
    """The smallest share of eight epochs, each known to 1 %, is below the truth by up to 2.5 %."""
    assert abs(covers_curve(Truth(), seeds, rounds, 500) - coverage(seeds)) <= 0.03


@pytest.mark.parametrize(
    ("values", "threshold", "more", "expected"),
    [
        ((0.2, 0.7, 0.5, 0.9), 0.6, True, Arrival(20, arrived=True, after=10)),
        ((0.2, 0.7), 0.7, True, Arrival(20, arrived=True, after=10)),
        ((0.9, 0.7), 0.7, True, Arrival(10, arrived=True, after=0)),
        ((0.2, 0.7), 0.71, True, Arrival(20, arrived=False, after=20)),
        ((0.2, math.nan), 0.71, True, Arrival(10, arrived=False, after=10)),
        ((9.0, math.nan, 3.0), 5.0, False, Arrival(30, arrived=True, after=10)),
        ((math.nan, math.nan), 0.1, True, Arrival(0, arrived=False, after=0)),
    ],
)
def test_the_first_value_beyond_the_threshold_counts(
    values: tuple[float, ...], threshold: float, more: bool, expected: Arrival
) -> None:
    assert first_at(values, [10.0 * (place + 1) for place in range(len(values))], threshold, more) == expected


def test_a_median_of_curves_is_cut_to_the_shortest_and_that_of_two_has_no_interval() -> None:
    found = spread([[1, 5, 9], [3, 1]])
    assert (found.middle.tolist(), found.low, found.high, found.runs) == ([2, 3], None, None, 2)
    with pytest.raises(ValueError, match="no curves"):
        spread([])


@pytest.mark.parametrize(
    ("count", "out", "share"), [(5, 0, 0.9375), (6, 0, 0.96875), (8, 0, 0.9921875), (9, 1, 0.9609375)]
)
def test_the_interval_of_a_median_leaves_out_as_many_as_it_can(count: int, out: int, share: float) -> None:
    found = spread([[value] for value in range(count)])
    assert found.low is not None
    assert found.high is not None
    assert (found.low.tolist(), found.high.tolist()) == ([out], [count - 1 - out])
    assert coverage(count) == pytest.approx(share)


def test_a_place_where_a_training_has_no_score_has_none() -> None:
    found = spread([[1.0, math.nan]] + [[float(value), 2.0] for value in range(5)])
    assert [math.isnan(value) for value in found.middle] == [False, True]
