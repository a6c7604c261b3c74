"""Labels of step-time series: the four classes, the position of a change, and what does not count as a change."""

from time import process_time

import numpy as np
import pytest
from numpy.typing import NDArray

from steelyard.statistics.steadiness import changepoints, long_run_variance, series_label

Floats = NDArray[np.float64]


def noisy(shape: Floats, seed: int = 0, sd: float = 0.02) -> Floats:
    random = np.random.default_rng(seed)
    return 1e6 * shape * (1 + sd * random.standard_normal(shape.size))


def levels(*parts: tuple[int, float]) -> Floats:
    return np.concatenate([np.full(count, level) for count, level in parts])


def test_a_change_of_level_is_found_at_its_position() -> None:
    # Twenty at 12, then forty at 10: whole mean 32/3, over 10 is a shift of 1/15.
    found = series_label(levels((20, 12.0), (40, 10.0)))
    assert (found.label, found.changepoint) == ("warm-up", 20)
    assert found.shift == pytest.approx(1 / 15)
    assert found.moves_mean


def test_two_changes_are_both_found() -> None:
    assert changepoints(levels((20, 10.0), (20, 12.0), (20, 9.0)), noise=0.01) == [20, 40]


@pytest.mark.parametrize("size", [20, 50, 200, 2000])
def test_warm_up_ends_on_the_fastest_level(size: int) -> None:
    warm = size // 5
    found = series_label(noisy(levels((warm, 1.5), (size - warm, 1.0))))
    assert found.label == "warm-up"
    assert found.changepoint is not None
    assert abs(found.changepoint - warm) <= size // 500 + 1
    assert found.shift == pytest.approx(0.1, abs=0.015)


def test_slowdown_ends_on_a_slower_level() -> None:
    found = series_label(noisy(levels((100, 1.0), (100, 1.05))))
    assert found.label == "slowdown"
    assert found.moves_mean
    assert found.shift < 0


def test_a_late_change_is_unstable() -> None:
    found = series_label(noisy(levels((170, 1.0), (30, 1.3))))
    assert found.label == "unstable"
    assert found.moves_mean


def test_a_change_too_small_to_matter_is_flat() -> None:
    found = series_label(noisy(levels((1000, 1.003), (1000, 1.0)), sd=0.001))
    assert found.label == "flat"


def test_a_short_warm_up_hardly_moves_the_mean() -> None:
    found = series_label(noisy(levels((60, 1.2), (1940, 1.0)), sd=0.01))
    assert found.label == "warm-up"
    assert not found.moves_mean


def test_spikes_are_not_changepoints() -> None:
    random = np.random.default_rng(3)
    for size in (200, 3000):
        spikes = (random.random(size) < 0.02) * random.exponential(1.0, size)
        assert series_label(noisy(np.ones(size), seed=size) * (1 + spikes)).label == "flat"


def test_flat_noise_is_nearly_always_labelled_flat() -> None:
    random = np.random.default_rng(4)
    for size in (20, 50, 200, 500):
        normal = [noisy(np.ones(size), seed=seed) for seed in range(50)]
        skewed = [1e6 * random.lognormal(0, 0.1, size) for _ in range(50)]
        flat = sum(series_label(samples).label == "flat" for samples in normal + skewed)
        assert flat >= 98, size


def test_autocorrelated_noise_is_not_mistaken_for_changes() -> None:
    random = np.random.default_rng(5)
    flat = 0
    for _ in range(50):
        noise = np.zeros(500)
        for step in range(1, 500):
            noise[step] = 0.5 * noise[step - 1] + 0.02 * random.standard_normal()
        flat += series_label(1e6 * np.exp(noise)).label == "flat"
    assert flat >= 47


def test_a_change_of_level_does_not_affect_the_long_run_variance() -> None:
    still = np.random.default_rng(6).standard_normal(400)
    moved = still + levels((200, 0.0), (200, 30.0))
    assert long_run_variance(moved) == pytest.approx(long_run_variance(still), rel=0.1)
    assert long_run_variance(still) == pytest.approx(1.0, rel=0.5)


@pytest.mark.parametrize("size", [1, 2, 11])
def test_too_few_samples_are_flat(size: int) -> None:
    assert series_label([1.0, 9.0] * (size // 2) + [1.0] * (size % 2)).label == "flat"


def test_a_scale_changes_no_label() -> None:
    samples = noisy(levels((40, 1.3), (160, 1.0)))
    one, other = series_label(samples), series_label(samples * 1e3)
    assert (one.label, one.changepoint) == (other.label, other.changepoint)


def test_a_million_samples_are_labelled_within_half_a_second() -> None:
    """Processor time: the elapsed time on a busy machine says little about the code."""
    samples = noisy(np.ones(1_000_000))
    start = process_time()
    assert series_label(samples).label == "flat"
    assert process_time() - start < 0.5
