"""When runs reach a threshold: those that never do are censored, and the multi-threshold summary needs all thresholds."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steelyard.statistics import survival
from steelyard.statistics.curves import spread
from steelyard.statistics.survival import Arrival, first_at, share_arrived

TIMES = st.lists(st.tuples(st.integers(1, 20), st.booleans()), min_size=1, max_size=12)


def arrivals(*values: tuple[float, bool]) -> list[Arrival]:
    return [Arrival(at, arrived) for at, arrived in values]


def test_without_censoring_it_is_the_share_that_has_arrived() -> None:
    found = share_arrived(arrivals((3, True), (1, True), (2, True), (3, True)))
    assert found.places == (1, 2, 3)
    assert found.shares == pytest.approx((0.25, 0.5, 1))
    assert (found.median, found.runs, found.arrived) == (2, 4, 4)


def test_a_run_that_ended_early_counts_as_long_as_it_lasted() -> None:
    """Kaplan and Meier by hand: at 1, one of 4 arrives; one leaves at 2; at 3, one of the 2 that are left arrives."""
    found = share_arrived(arrivals((1, True), (2, False), (3, True), (4, False)))
    at = dict(zip(found.places, found.shares, strict=True))
    assert at[1] == pytest.approx(1 - 3 / 4)
    assert at[3] == pytest.approx(1 - 3 / 4 * 1 / 2)
    assert found.median == 3
    assert found.arrived == 2


def test_where_no_run_arrives_there_is_no_median_and_no_warning() -> None:
    found = share_arrived(arrivals((5, False), (5, False)))
    assert set(found.shares) == {0}
    assert (found.median, found.arrived, found.runs) == (None, 0, 2)
    assert (found.low[-1], found.high[-1]) == (0, 1)


def test_no_runs_have_no_share() -> None:
    with pytest.raises(ValueError, match="no runs"):
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


def test_the_mean_over_thresholds_needs_a_median_of_each() -> None:
    early, late = share_arrived(arrivals((2, True), (4, True))), share_arrived(arrivals((6, True), (8, True)))
    never = share_arrived(arrivals((9, False), (9, True), (9, False)))
    assert survival.mean_over_thresholds([early, late]) == 4
    assert survival.mean_over_thresholds([early, never]) is None
    assert survival.mean_over_thresholds([]) is None


@pytest.mark.parametrize(
    ("values", "threshold", "more", "expected"),
    [
        ((0.2, 0.7, 0.5, 0.9), 0.6, True, Arrival(20, arrived=True)),
        ((0.2, 0.7), 0.7, True, Arrival(20, arrived=True)),
        ((0.2, 0.7), 0.71, True, Arrival(20, arrived=False)),
        ((9.0, math.nan, 3.0), 5.0, False, Arrival(30, arrived=True)),
        ((math.nan, math.nan), 0.1, True, Arrival(20, arrived=False)),
    ],
)
def test_the_first_value_beyond_the_threshold_counts(
    values: tuple[float, ...], threshold: float, more: bool, expected: Arrival
) -> None:
    assert first_at(values, [10.0 * (place + 1) for place in range(len(values))], threshold, more) == expected


def test_a_spread_is_cut_to_the_shortest_curve() -> None:
    found = spread([[1, 5, 9], [3, 1]])
    assert (found.mean.tolist(), found.low.tolist(), found.high.tolist(), found.runs) == ([2, 3], [1, 1], [3, 5], 2)
    with pytest.raises(ValueError, match="no curves"):
        spread([])
