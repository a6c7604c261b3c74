"""The machine's arithmetic peak: how it is measured and stored, and the check that uses it."""

from pathlib import Path

import pytest

from steelyard.measure import gemm
from steelyard.measure.gemm import MARGIN, add_peak, best_product, ensure_peak, peak_check, peaks, plausible_limit


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STEELYARD_CACHE", str(tmp_path))


def test_several_sources_are_stored_and_only_a_higher_figure_replaces_one() -> None:
    add_peak("m", 2, "float32", "numpy", 100.0)
    add_peak("m", 2, "float32", "tiny", 120.0)
    add_peak("m", 2, "float32", "numpy", 90.0)
    assert peaks("m", 2) == {"numpy": 100.0, "tiny": 120.0}
    assert plausible_limit(peaks("m", 2)) == 120.0 * MARGIN


def test_peaks_are_stored_separately_by_machine_threads_and_precision() -> None:
    add_peak("m", 2, "float32", "numpy", 100.0)
    assert peaks("other", 2) == peaks("m", 1) == peaks("m", 2, "float64") == {}
    assert plausible_limit({}) is None


def test_a_damaged_record_is_measured_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    add_peak("m", 2, "float32", "numpy", 100.0)
    next(tmp_path.glob("machines/*.json")).write_text("{")
    monkeypatch.setattr(gemm, "measure_peak", lambda *_: 80.0)
    assert ensure_peak("m", 2) == {"numpy": 80.0}


def test_a_known_peak_is_not_measured_again(monkeypatch: pytest.MonkeyPatch) -> None:
    add_peak("m", 2, "float32", "numpy", 100.0)
    monkeypatch.setattr(gemm, "measure_peak", lambda *_: pytest.fail("measured again"))
    assert ensure_peak("m", 2) == {"numpy": 100.0}
    assert peak_check("m", 2, "float32", 100.0) == ""


def test_a_speed_above_the_peak_is_reported() -> None:
    add_peak("m", 2, "float32", "numpy", 1e9)
    assert "more than this machine can do" in peak_check("m", 2, "float32", 2e9)


def test_a_peak_measured_under_load_is_measured_again_before_a_speed_is_rejected(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    add_peak("m", 2, "float32", "numpy", 30.0)
    monkeypatch.setattr(gemm, "measure_peak", lambda *_: 150.0)
    assert peak_check("m", 2, "float32", 140.0) == ""
    assert peaks("m", 2) == {"numpy": 150.0}


def test_the_peak_is_measured_in_a_new_process() -> None:
    assert gemm.measure_peak(1, "float32", 0.1) > 0.5


def test_operations_are_counted_as_two_for_each_multiplication() -> None:
    gflops = best_product("float64", 0.05, sizes=(64,))
    assert 0.01 < gflops < 1e5


def test_a_precision_that_numpy_cannot_multiply_is_checked_against_frameworks_only() -> None:
    assert ensure_peak("m", 2, "bfloat16") == {}
    assert peak_check("m", 2, "bfloat16", 1e9) == ""
    add_peak("m", 2, "bfloat16", "tiny", 500.0)
    assert "more than this machine can do" in peak_check("m", 2, "bfloat16", 1e9)
