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
    def fits(steps):
        long_enough = steps * step >= seconds * (1 - 1e-9)
        return long_enough and (steps >= 5 or steps * step >= steady.LONG_BLOCK_S * (1 - 1e-9))

    steps = steady.block_steps(step, seconds, 5)
    assert fits(steps)
    assert steps == 1 or not fits(steps - 1) or (steps - 1) * step == pytest.approx(seconds)


@pytest.mark.parametrize(("step_s", "steps"), [(0.01, 10), (0.5, 10), (0.7, 8), (1.0, 5), (1.3, 4), (60.0, 4)])
def test_long_steps_need_fewer_of_them(step_s, steps):
    assert steady.fewest_steps(step_s, 10) == steps


def warmed_up(times_ms, most=40):
    """Return the warm-up of a process whose step i takes `times_ms(i)`."""
    warm_up = steady.WarmUp(10, 5)
    while not warm_up.is_steady() and warm_up.steps < most:
        block = [times_ms(warm_up.steps + i) for i in range(warm_up.block)]
        warm_up.add(round(sum(block) / len(block) * 1e6))
    return warm_up


def test_short_steps_warm_up_in_blocks_of_five_after_one_that_shows_how_long_they_are():
    found = warmed_up(lambda step: 20)
    assert (found.block, found.steps, found.blocks_ns) == (5, 11, [20_000_000] * 2)


def test_long_steps_warm_up_in_blocks_of_one():
    found = warmed_up(lambda step: 3000)
    assert (found.block, found.steps) == (1, 4)


def test_a_second_step_that_compiles_does_not_make_short_steps_look_long():
    found = warmed_up(lambda step: 6000 if step == 0 else 20)
    assert (found.block, found.blocks_ns) == (5, [20_000_000] * 2)


def test_long_steps_that_get_faster_warm_up_for_longer():
    found = warmed_up(lambda step: 3000 if step > 3 else 6000 - 700 * step)
    assert found.steps > 5
    assert found.blocks_ns[-2:] == [3_000_000_000] * 2


def test_a_process_without_a_block_is_not_steady():
    assert not steady.WarmUp(10, 5).is_steady()
