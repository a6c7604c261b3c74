"""Summaries of one process, the step plan, and the noise floor, against numbers worked by hand."""

from time import process_time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from steelyard.errors import UserError
from steelyard.statistics.calibration import UNCALIBRATED, NoiseFloor, calibrate
from steelyard.statistics.steps import steps_per_process
from steelyard.statistics.summaries import summarise

times = st.lists(st.floats(1e3, 1e9), min_size=3, max_size=60)


def test_a_summary_agrees_with_the_one_worked_by_hand() -> None:
    # 1 2 3 4 100: mean 110/5 = 22; quartiles 2 and 4, fences -1 and 7, so 100 is out; 5 % at 1 + 0.2, 95 % at
    # 4 + 0.8 * 96. Centred: -21 -20 -19 -18 78, squares 7610, neighbours 420 + 380 + 342 - 1404 = -262.
    summary = summarise([1, 2, 3, 4, 100])
    assert (summary.count, summary.median_ns, summary.mean_ns) == (5, 3, 22)
    assert (summary.quantile_25_ns, summary.quantile_75_ns) == (2, 4)
    assert (summary.quantile_05_ns, summary.quantile_95_ns) == pytest.approx((1.2, 80.8))
    assert summary.outliers == 1
    assert summary.autocorrelation == pytest.approx(-262 / 7610)
    assert summary.relative_sd == pytest.approx((7610 / 4) ** 0.5 / 22)
    assert summary.mean_median_gap == pytest.approx(22 / 3 - 1)
    assert summary.gap_flagged


def test_outliers_count_on_both_sides() -> None:
    # Quartiles 10 and 12, fences 7 and 15: 1 is out below, 30 above.
    assert summarise([10, 11, 12, 10, 11, 12, 1, 30, 11, 10, 12]).outliers == 2


def test_autocorrelation_inflates_the_spread_of_a_step() -> None:
    # 1 1 1 3 3 3: mean 2; squares 6, neighbours 1 + 1 - 1 + 1 + 1 = 3, rho 1/2; sd sqrt(6/5) times sqrt(3).
    summary = summarise([1, 1, 1, 3, 3, 3])
    assert summary.autocorrelation == pytest.approx(0.5)
    assert summary.relative_sd == pytest.approx((6 / 5 * 3) ** 0.5 / 2)


def test_blocks_of_steps_give_the_time_and_the_spread_of_a_step() -> None:
    # Blocks of four steps: 40 and 44 ns are 10 and 11 ns a step; a block's sd is a step's over sqrt(4).
    summary = summarise([40, 44], steps_per_sample=4)
    assert (summary.count, summary.mean_ns) == (8, 10.5)
    assert summary.relative_sd == pytest.approx(0.5**0.5 * 2 / 10.5)


def test_a_constant_series_has_no_spread_and_no_flag() -> None:
    summary = summarise([7.0] * 10)
    assert (summary.relative_sd, summary.autocorrelation, summary.outliers) == (0, 0, 0)
    assert not summary.gap_flagged


@given(times, st.floats(0.01, 100))
def test_a_change_of_unit_scales_times_and_leaves_the_rest(samples: list[float], unit: float) -> None:
    one, other = summarise(samples), summarise([unit * sample for sample in samples])
    assert other.mean_ns == pytest.approx(unit * one.mean_ns)
    assert other.median_ns == pytest.approx(unit * one.median_ns)
    assert other.relative_sd == pytest.approx(one.relative_sd, rel=1e-4, abs=1e-6)


@given(times)
def test_throughput_is_steps_over_total_time(samples: list[float]) -> None:
    summary = summarise(samples)
    assert summary.mean_ns * summary.count == pytest.approx(sum(samples))


@pytest.mark.parametrize("samples", [[], [[1.0, 2.0]], [1.0, float("nan")], [0.0, 1.0], [-1.0]])
def test_an_impossible_series_is_refused(samples: list[float]) -> None:
    with pytest.raises(ValueError, match="step time"):
        summarise(samples)


def test_a_block_without_steps_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one step"):
        summarise([1.0], steps_per_sample=0)


def test_a_million_samples_are_summarised_well_under_a_fifth_of_a_second() -> None:
    """Processor time: the elapsed time on a busy machine says little about the code."""
    samples = np.random.default_rng(1).lognormal(0, 0.02, 1_000_000) * 1e6
    best = 1.0
    for _ in range(3):
        start = process_time()
        summarise(samples)
        best = min(best, process_time() - start)
    assert best < 0.2


@pytest.mark.parametrize(
    ("start", "step", "noise", "expected"),
    [
        (6, 0.005, 0.02, 139),  # sqrt(1200 * 16) = 138.6
        (8, 0.05, 0.02, 51),  # sqrt(160 * 16) = 50.6
        (12, 0.5, 0.02, 20),  # sqrt(24 * 16) = 19.6
        (20, 3, 0.02, 11),  # sqrt(6.67 * 16) = 10.3
        (1, 10, 0.02, 10),  # 1.3, below the least
        (60, 0.001, 0.02, 200),  # 980, above the most
        (6, 0.005, 0.0, 10),  # steps without noise: the least will do
    ],
)
def test_steps_follow_from_costs_and_noises(start: float, step: float, noise: float, expected: int) -> None:
    assert steps_per_process(start, step, noise, 0.005) == expected


def test_without_process_noise_every_step_helps() -> None:
    assert steps_per_process(6, 0.005, 0.02, 0.0) == 200


def test_impossible_costs_are_refused() -> None:
    with pytest.raises(ValueError, match="negative"):
        steps_per_process(6, 0.0, 0.02, 0.005)


def test_a_noise_floor_agrees_with_the_one_worked_by_hand() -> None:
    # Mean 0, squares 1 + 1 + 9 + 9 = 20 e-4, over three degrees of freedom.
    floor = calibrate([0.01, -0.01, 0.03, -0.03])
    assert floor.s_d0 == pytest.approx((20e-4 / 3) ** 0.5)
    assert (floor.degrees_of_freedom, floor.rounds, floor.measured) == (3, 4, True)
    assert floor.process_sd == pytest.approx((10e-4 / 3) ** 0.5)


def test_an_order_effect_is_not_noise() -> None:
    assert calibrate([0.11, 0.09, 0.11]).s_d0 == pytest.approx(calibrate([0.01, -0.01, 0.01]).s_d0)


def test_a_noise_floor_survives_storing() -> None:
    floor = calibrate([0.01, -0.02, 0.005])
    assert NoiseFloor.from_dict(floor.to_dict()) == floor
    assert not NoiseFloor.from_dict(UNCALIBRATED.to_dict()).measured


@pytest.mark.parametrize(
    "stored",
    [
        {},
        {"s_d0": "0.01", "degrees_of_freedom": 8, "rounds": 9},
        {"s_d0": -0.01, "degrees_of_freedom": 8, "rounds": 9},
        {"s_d0": float("nan"), "degrees_of_freedom": 8, "rounds": 9},
        {"s_d0": 0.01, "degrees_of_freedom": 0, "rounds": 1},
    ],
)
def test_a_damaged_noise_floor_is_refused_in_one_sentence(stored: dict[str, object]) -> None:
    with pytest.raises(UserError, match="calibrate again"):
        NoiseFloor.from_dict(stored)


@pytest.mark.parametrize("log_ratios", [[], [0.01], [0.01, float("inf")]])
def test_a_noise_floor_needs_two_finite_rounds(log_ratios: list[float]) -> None:
    with pytest.raises(ValueError, match="at least two"):
        calibrate(log_ratios)
