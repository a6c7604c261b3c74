"""Summaries of one process, checked against hand calculations."""

from time import process_time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from steelyard.statistics.summaries import series, summarise

times = st.lists(st.floats(1e3, 1e9), min_size=3, max_size=60)


def test_a_summary_has_median_and_mean() -> None:
    summary = summarise([100, 1, 3, 4, 2])
    assert (summary.median_ns, summary.mean_ns) == (3, 22)
    assert summarise([4, 1, 2, 3]).median_ns == 2.5


def test_whole_numbers_become_float64() -> None:
    assert series([1, 2, 3]).dtype == np.float64
    assert series(np.array([1, 2], np.int32)).tolist() == [1.0, 2.0]


@given(times, st.floats(0.01, 100))
def test_a_change_of_unit_scales_median_and_mean(samples: list[float], unit: float) -> None:
    one, other = summarise(samples), summarise([unit * sample for sample in samples])
    assert other.mean_ns == pytest.approx(unit * one.mean_ns)
    assert other.median_ns == pytest.approx(unit * one.median_ns)


@pytest.mark.parametrize("samples", [[], [[1.0, 2.0]], [1.0, float("nan")], [0.0, 1.0], [-1.0]])
def test_a_series_that_is_not_one_of_positive_times_is_refused(samples: list[float]) -> None:
    with pytest.raises(ValueError, match=r"(?i)step time"):
        summarise(samples)


def test_a_million_samples_are_summarised_well_under_a_fifth_of_a_second() -> None:
    """Processor time: the elapsed time on a busy machine says little about the code."""
    samples = np.random.default_rng(1).lognormal(0, 0.02, 1_000_000) * 1e6
    best = 1.0
    for _ in range(3):
        start = process_time()
        summarise(samples)
        best = min(best, process_time() - start)
    assert best < 0.2
