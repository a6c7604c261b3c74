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


def test_what_overlaps_the_end_of_another_belongs_to_the_later_one() -> None:
    assert spans.own_times(times(0, 8, 11, 13), times(10, 4, 4, 1)).tolist() == [8, 3, 3, 1]
    # 0..10 holds 5..8, in which 7..12 begins.
    assert spans.own_times(times(0, 5, 7), times(10, 3, 5)).tolist() == [5, 2, 5]


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
def test_own_times_of_a_thread_add_up_to_what_its_operations_cover(drawn: list[tuple[int, int]]) -> None:
    ordered = sorted(drawn, key=lambda each: (each[0], -each[1]))
    start, length = times(*(a for a, _ in ordered)), times(*(b for _, b in ordered))
    own = spans.own_times(start, length)
    assert own.min() >= 0
    assert own.sum() == spans.length(start, start + length)
