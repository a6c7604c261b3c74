"""Orders of rounds: every framework runs once per round, and positions are balanced."""

from collections import Counter
from itertools import pairwise
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steelyard.statistics.orders import round_order, turn_order, williams_squares

sizes = st.integers(1, 8)
seeds = st.integers(0, 10**6)


def keys(size: int) -> list[str]:
    return [f"framework-{index}" for index in range(size)]


@given(sizes, st.integers(0, 60), seeds)
def test_every_round_contains_each_framework_once(size: int, number: int, seed: int) -> None:
    assert sorted(round_order(keys(size), number, seed)) == keys(size)


@given(st.integers(2, 8), seeds)
def test_over_a_cycle_each_has_each_position_equally_often(size: int, seed: int) -> None:
    rows = size if size % 2 == 0 else 2 * size
    orders = [round_order(keys(size), number, seed) for number in range(1, rows + 1)]
    held = Counter((key, position) for order in orders for position, key in enumerate(order))
    assert set(held.values()) == {rows // size}
    assert len(held) == size * size


@given(st.integers(2, 8), st.integers(1, 30), seeds)
def test_positions_are_almost_balanced_at_any_time(size: int, last: int, seed: int) -> None:
    orders = [round_order(keys(size), number, seed) for number in range(1, last + 1)]
    for position in range(size):
        held = Counter(order[position] for order in orders)
        assert max(held.values()) - min(held[key] for key in keys(size)) <= 2


@given(st.integers(3, 8), seeds)
def test_no_position_repeats_in_the_first_rounds(size: int, seed: int) -> None:
    orders = [round_order(keys(size), number, seed) for number in range(1, size + 1)]
    for position in range(size):
        assert len({order[position] for order in orders}) == size


@given(seeds, st.integers(0, 20))
def test_two_frameworks_swap_within_each_pair_of_rounds(seed: int, pair: int) -> None:
    first, second = (round_order(["a", "b"], 2 * pair + number, seed) for number in (1, 2))
    assert first == second[::-1]


def test_which_of_two_goes_first_is_random_for_each_pair() -> None:
    first = Counter(round_order(["a", "b"], 2 * pair + 1, seed=3)[0] for pair in range(200))
    assert 70 < first["a"] < 130


@given(st.integers(2, 8))
def test_each_follows_each_equally_often_in_the_design(size: int) -> None:
    rows = [row for square in williams_squares(size) for row in square]
    follows = Counter((a, b) for row in rows for a, b in pairwise(row))
    assert len(follows) == size * (size - 1)
    assert len(set(follows.values())) == 1


@pytest.mark.parametrize(("size", "squares"), [(2, 1), (3, 2), (4, 1), (5, 2), (8, 1)])
def test_an_even_number_of_contenders_needs_one_square_and_an_odd_one_two(size: int, squares: int) -> None:
    found = williams_squares(size)
    assert len(found) == squares
    assert all(sorted(row) == list(range(size)) for square in found for row in square)


def test_the_rows_of_a_cycle_are_shuffled() -> None:
    # Without shuffling, the first framework would always be the second one of the previous round.
    second_then_first = 0
    for seed in range(200):
        before, after = round_order("abcd", 1, seed), round_order("abcd", 2, seed)
        second_then_first += before[1] == after[0]
    assert 40 < second_then_first < 95  # One in three is 67.


def test_an_order_depends_only_on_its_arguments() -> None:
    assert round_order(["b", "a", "c"], 4, 7) == round_order(iter(["c", "b", "a"]), 4, 7)
    orders = {tuple(round_order("abcde", number, seed) for number in range(1, 4)) for seed in range(20)}
    assert len(orders) == 20


@pytest.mark.parametrize("few", [[], ["a"]])
def test_no_framework_or_one_is_returned_unchanged(few: list[str]) -> None:
    assert list(round_order(few, 1, 0)) == few


@given(st.dictionaries(st.sampled_from(keys(8)), st.integers(1, 40), min_size=1), seeds)
def test_turns_are_spread_evenly_over_the_time(blocks: dict[str, int], seed: int) -> None:
    order = turn_order(blocks, Random(seed))
    assert Counter(order) == blocks
    done: Counter[str] = Counter()
    for name in order:
        done[name] += 1
        # Each block is in its own part of the time, so no contender is more than one part ahead of that moment, or behind.
        earliest = max((done[each] - 1) / count for each, count in blocks.items())
        latest = min((done[each] + 1) / count for each, count in blocks.items())
        assert earliest < latest


def test_turns_are_drawn_anew_in_every_round_and_repeatable() -> None:
    blocks = dict.fromkeys(keys(5), 6)
    orders = {tuple(turn_order(blocks, Random(seed))) for seed in range(20)}
    assert len(orders) == 20
    assert turn_order(blocks, Random(3)) == turn_order(dict(reversed(blocks.items())), Random(3))
