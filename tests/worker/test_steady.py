"""Detection of the steady state and the number of counted steps."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steelyard_worker import steady


def noisy(count, level=1_000_000, sd=0.02, seed=1):
    draw = random.Random(seed)
    return [round(level * draw.gauss(1, sd)) for _ in range(count)]


def test_a_constant_series_is_steady():
    assert steady.is_steady(noisy(8, sd=0.005))
    assert steady.is_steady([1_000_000] * 2)


@pytest.mark.parametrize("blocks", [2, 3, 4, 8, 20])
def test_a_falling_series_is_not_steady(blocks):
    falling = [round(1_000_000 * (3 - 2 * i / blocks)) for i in range(blocks)]
    assert not steady.is_steady(falling)


def test_a_series_with_a_compilation_in_the_older_window_is_not_steady():
    for place in (0, 1, 2):
        series = noisy(8, sd=0.001)
        series[place] = 50_000_000
        assert not steady.is_steady(series)


def test_a_process_that_got_slower_is_warm():
    assert steady.is_steady([1_000_000, 1_000_000, 1_500_000, 1_500_000])


def test_noise_does_not_prolong_the_warm_up():
    # With 9 % of noise, two equal windows of four blocks differ by more than 5 % in about half of all cases.
    found = [steady.is_steady(noisy(8, sd=0.09, seed=seed)) for seed in range(1000)]
    assert sum(found) >= 850


def test_noise_does_not_hide_that_a_process_still_gets_much_faster():
    falling = [
        [round(value * (1.6 - i / 8 * 0.6)) for i, value in enumerate(noisy(8, sd=0.03, seed=s))] for s in range(200)
    ]
    assert sum(map(steady.is_steady, falling)) <= 10


def test_too_few_values_are_never_steady():
    assert not steady.is_steady([])
    assert not steady.is_steady([1_000_000])


def test_the_optimum_equals_that_of_the_published_examples():
    # Worked examples of the method: 6 s start, 5 ms steps, 2 % / 0.5 % noise -> 139 steps; 12 s, 0.5 s -> 20; 20 s, 3 s -> 11.
    assert steady.counted_steps(6, 0.005, 4, 10, 200) == 139
    assert steady.counted_steps(12, 0.5, 4, 10, 200) == 20
    assert steady.counted_steps(20, 3, 4, 10, 200) == 11


@given(start=st.floats(0.01, 1000), step=st.floats(1e-4, 100), ratio=st.floats(0.1, 20))
def test_counted_steps_stay_within_their_bounds(start, step, ratio):
    assert 10 <= steady.counted_steps(start, step, ratio, 10, 200) <= 200


@given(step=st.floats(1e-4, 10), seconds=st.floats(0.1, 5))
def test_a_block_is_the_shortest_that_lasts_long_enough(step, seconds):
    steps = steady.block_steps(step, seconds, 5)
    assert steps >= 5
    assert steps * step >= seconds * (1 - 1e-9)
    assert steps == 5 or (steps - 1) * step < seconds
