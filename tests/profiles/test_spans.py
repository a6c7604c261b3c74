"""What intervals cover together, and what of an operation's time is its own."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from steelyard.profiles import spans


def times(*values: int) -> np.ndarray:
    return np.array(values, np.int64)


def test_an_operation_owns_what_those_inside_it_leave() -> None:
    # 0..100 holds 10..40, which holds 20..30, and 50..90.
    assert spans.own_times(times(0, 10, 20, 50), times(100, 30, 10, 40)).tolist() == [30, 20, 10, 40]


def test_an_operation_after_another_is_not_inside_it() -> None:
    assert spans.own_times(times(0, 10, 25), times(10, 15, 5)).tolist() == [10, 15, 5]


def test_one_that_ends_late_never_leaves_less_than_nothing() -> None:
    assert spans.own_times(times(0, 5), times(10, 30)).tolist() == [0, 30]


def test_a_union_joins_what_overlaps_or_touches() -> None:
    starts, ends = spans.union(times(50, 0, 5, 10), times(60, 8, 10, 20))
    assert (starts.tolist(), ends.tolist()) == ([0, 50], [20, 60])
    assert spans.length(times(), times()) == 0


def test_what_others_cover_is_left_out() -> None:
    assert spans.uncovered(times(0, 100), times(50, 150), times(20, 140), times(30, 200)) == 40 + 40


intervals = st.lists(st.tuples(st.integers(0, 300), st.integers(1, 60)), min_size=1, max_size=30)


@given(intervals)
def test_a_union_covers_exactly_the_same_points(drawn: list[tuple[int, int]]) -> None:
    start, end = times(*(a for a, _ in drawn)), times(*(a + b for a, b in drawn))
    covered = {point for a, b in drawn for point in range(a, a + b)}
    starts, ends = spans.union(start, end)
    assert [point for a, b in zip(starts.tolist(), ends.tolist(), strict=True) for point in range(a, b)] == sorted(
        covered
    )


@given(intervals)
def test_own_times_of_nested_operations_add_up_to_what_they_cover(drawn: list[tuple[int, int]]) -> None:
    """Operations of one thread are nested or apart: cut every one at the end of the one that it began in."""
    ordered, nested, open_ = sorted((a, -b) for a, b in drawn), [], []
    for start, length in ordered:
        while open_ and open_[-1] <= start:
            open_.pop()
        end = min([start - length, *open_])
        open_.append(end)
        nested.append((start, end))
    start, end = times(*(a for a, _ in nested)), times(*(b for _, b in nested))
    assert spans.own_times(start, end - start).sum() == spans.length(start, end)
