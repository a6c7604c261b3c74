"""Successive halving: who is measured again, and how often."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from steelyard.statistics.halving import better_half, measurements, ordered

COSTS = st.dictionaries(
    st.text("abcdef", min_size=1, max_size=3), st.lists(st.floats(1e-3, 1e9), min_size=1, max_size=4), max_size=12
)


def test_a_bad_moment_does_not_count() -> None:
    costs = {"slow": [4.0, 5.0], "fast": [3.0, 3.5], "one bad moment": [100.0, 2.0], "not measured": []}
    assert ordered(costs) == ["one bad moment", "fast", "slow"]


@given(COSTS)
def test_the_better_half_is_never_worse_than_the_rest(costs: dict[str, list[float]]) -> None:
    kept = better_half(costs)
    assert len(kept) == (len(costs) + 1) // 2
    assert kept == ordered(costs)[: len(kept)]


@given(COSTS.filter(bool))
def test_halving_ends_with_the_best(costs: dict[str, list[float]]) -> None:
    left = costs
    for _ in range(len(costs)):
        left = {name: costs[name] for name in better_half(left)}
    assert list(left) == ordered(costs)[:1]


def test_every_stage_doubles_the_measurements() -> None:
    assert [measurements(stage) for stage in (1, 2, 3, 4)] == [1, 2, 4, 8]
