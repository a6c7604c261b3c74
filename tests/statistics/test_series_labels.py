"""Labels of step-time series: the four classes, the position of a change, and what does not count as a change."""

from time import process_time

import numpy as np
import pytest
from numpy.typing import NDArray

from steelyard.statistics.steadiness import TRIMMED_POWER, SeriesLabel, changepoints, long_run_variance, series_label

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


@pytest.mark.parametrize("place", [*range(6, 44, 3), 44])
def test_a_clear_change_is_found_exactly_wherever_it_is(place: int) -> None:
    found = series_label(levels((place, 12.0), (60 - place, 10.0)))
    assert (found.label, found.changepoint) == ("warm-up", place)


def test_blocks_of_one_and_two_samples_are_averaged() -> None:
    # 750 samples are averaged into 500 blocks, half of them of two samples.
    found = series_label(levels((350, 1.1), (400, 1.0)))
    assert found.label == "warm-up"
    assert found.changepoint is not None
    assert abs(found.changepoint - 350) <= 1


def test_the_label_of_a_flat_series_says_nothing_else() -> None:
    assert series_label([10.0] * 40) == SeriesLabel("flat", None, 0.0)


def test_an_unstable_series_is_described_by_the_level_that_differs_most_from_the_mean() -> None:
    # 170 at 1.0 and 30 at 1.3: the mean is 1.045, 4.5 % above the first level and 19.6 % below the last.
    found = series_label(levels((170, 1.0), (30, 1.3)))
    assert (found.label, found.changepoint) == ("unstable", 170)
    assert found.shift == pytest.approx(1.045 / 1.3 - 1)


def test_a_short_disturbance_late_in_a_series_is_no_state_that_the_mean_could_be_biased_from() -> None:
    # 188 at 1.0 and 12 at 3.0: the mean is 1.12, 12 % above the long level; 6 % of the series are no level to compare it with.
    found = series_label(levels((188, 1.0), (12, 3.0)))
    assert found.label == "unstable"
    assert found.shift == pytest.approx(0.12, rel=1e-3)


@pytest.mark.parametrize(
    ("heights", "label"), [((12, 10, 11), "slowdown"), ((10, 12, 9), "warm-up"), ((9, 12, 10), "slowdown")]
)
def test_the_last_level_decides_between_warm_up_and_slowdown(heights: tuple[float, ...], label: str) -> None:
    found = series_label(levels((30, heights[0]), (30, heights[1]), (60, heights[2])))
    assert (found.label, found.changepoint) == (label, 60)
    mean = (30 * heights[0] + 30 * heights[1] + 60 * heights[2]) / 120
    assert found.shift == pytest.approx(mean / heights[2] - 1)


@pytest.mark.parametrize("spike", [1000.0, 0.001])
@pytest.mark.parametrize("size", [12, 40])
def test_a_single_step_that_is_far_too_long_or_too_short_is_no_change(spike: float, size: int) -> None:
    samples = np.full(size, 10.0)
    samples[size // 2] = spike
    assert series_label(samples).label == "flat"


def test_twelve_samples_are_enough_to_judge() -> None:
    assert series_label(levels((6, 12.0), (6, 10.0))).label == "warm-up"
    assert changepoints(levels((6, 12.0), (6, 10.0)), noise=0.01) == [6]
    assert changepoints(levels((5, 12.0), (6, 10.0)), noise=0.01) == []


def test_a_change_must_explain_more_than_the_penalty() -> None:
    # Two levels of 20 points at a distance d lower the squared error by 10 d^2; the penalty is 4 (1 + 8/40) ln 40 = 17.7.
    assert changepoints(levels((20, 0.0), (20, 1.30)), noise=1.0) == []
    assert changepoints(levels((20, 0.0), (20, 1.36)), noise=1.0) == [20]
    # 60 and 20 points: 15 d^2 against 4 (1 + 8/80) ln 80 = 19.3.
    assert changepoints(levels((60, 0.0), (20, 1.10)), noise=1.0) == []
    assert changepoints(levels((60, 0.0), (20, 1.17)), noise=1.0) == [60]


def test_without_noise_a_change_of_less_than_a_millionth_is_none() -> None:
    assert changepoints(1e9 + levels((20, 0.0), (20, 500.0)), noise=0.0) == []
    assert changepoints(1e9 + levels((20, 0.0), (20, 5000.0)), noise=0.0) == [20]


def test_the_long_run_variance_agrees_with_a_hand_calculation() -> None:
    # 0 1 2 1 0 1 2 1 ...: every difference at lag 1 is 1; at lag 2 half of them are 0 and half 2, so that the 32 smallest
    # of 40 squares have the mean 12 * 4 / 32 = 1.5. rho = 0.5, and the factor is 1 / 2 / 0.5 * 1.5 / 0.5 = 3.
    points = np.resize([0.0, 1.0, 2.0, 1.0], 42)
    assert long_run_variance(points) == pytest.approx(3 / TRIMMED_POWER)
    # A straight line: differences of 1 and 2, so rho is limited to 0.8, and the factor is 1 / 2 / 0.2 * 1.8 / 0.2 = 22.5.
    assert long_run_variance(np.arange(42.0)) == pytest.approx(22.5 / TRIMMED_POWER)
    # 0 1 0 1 ...: negative correlation counts as none.
    assert long_run_variance(np.resize([0.0, 1.0], 12)) == pytest.approx(0.5 / TRIMMED_POWER)


def test_a_constant_or_very_short_series_has_no_long_run_variance() -> None:
    assert long_run_variance(np.full(40, 5.0)) == 0.0
    assert long_run_variance(np.resize([0.0, 1.0], 11)) == 0.0


def test_two_slow_steps_at_either_end_are_a_change_and_no_spike() -> None:
    assert series_label([20.0, 20.0, *[10.0] * 30]).label == "warm-up"
    assert series_label([*[10.0] * 30, 20.0, 20.0]).label == "unstable"
