"""The machine's arithmetic peak: how it is measured and stored, and the check that uses it."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from measure.scripted_clock import Seconds
from steelyard.errors import UserError
from steelyard.measure import gemm, peak
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


@pytest.mark.parametrize(
    "text",
    [
        "{",
        "[]",
        '{"float32, 2 threads": []}',
        '{"float32, 2 threads": {"numpy": "x"}}',
        '{"float32, 2 threads": {"numpy": NaN}}',
    ],
)
def test_a_damaged_record_is_measured_again(text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    add_peak("m", 2, "float32", "numpy", 100.0)
    next(tmp_path.glob("machines/*.json")).write_text(text)
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


def test_the_speed_is_that_of_the_fastest_product_of_any_size(monkeypatch: pytest.MonkeyPatch) -> None:
    # Each product takes one second of this clock: 2 * 10^3 and 2 * 30^3 operations.
    monkeypatch.setattr(gemm, "time", Seconds())
    assert best_product("float32", 8.0, sizes=(30, 10)) == pytest.approx(2 * 30**3 / 1e9)


def test_each_size_is_tried_for_an_equal_share_of_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Seconds()
    monkeypatch.setattr(gemm, "time", clock)
    # Of 40 s each size gets 20: one look at its beginning, two per product, the last one at the end of its share.
    best_product("float32", 40.0, sizes=(4, 4))
    assert 40 <= clock.now <= 46


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_precision_asked_for_is_multiplied_and_nothing_is_allocated_meanwhile(
    dtype: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    multiplied = set()
    monkeypatch.setattr(gemm, "time", Seconds())
    monkeypatch.setattr(
        np,
        "matmul",
        lambda left, right, out: multiplied.add((left.shape, left.dtype.name, right.dtype.name, out.dtype.name)),
    )
    best_product(dtype, 8.0, sizes=(4, 5))
    assert multiplied == {((size, size), dtype, dtype, dtype) for size in (4, 5)}


def test_the_sentence_about_a_speed_above_the_peak_has_both_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    add_peak("m", 2, "float64", "numpy", 100.0)
    measured = []
    monkeypatch.setattr(gemm, "measure_peak", lambda *asked: measured.append(asked) or 110.0)
    assert peak_check("m", 2, "float64", 200.0) == (
        "200 GFLOP/s is more than this machine can do (its best float64 matrix product reaches 110), so the measured "
        "time or the number of operations is wrong"
    )
    assert measured == [(2, "float64")]
    assert peaks("m", 2, "float64") == {"numpy": 110.0}


def test_a_speed_at_the_limit_is_plausible(monkeypatch: pytest.MonkeyPatch) -> None:
    add_peak("m", 2, "float32", "numpy", 100.0)
    monkeypatch.setattr(gemm, "measure_peak", lambda *_: pytest.fail("measured again"))
    assert peak_check("m", 2, "float32", 100.0 * MARGIN) == ""


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_peak_is_measured_with_the_threads_and_the_precision_asked_for(
    dtype: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    measured = []
    monkeypatch.setattr(gemm, "measure_peak", lambda *asked: measured.append(asked) or 50.0)
    assert ensure_peak("m", 3, dtype) == {"numpy": 50.0}
    assert measured == [(3, dtype)]
    assert peaks("m", 3, dtype) == {"numpy": 50.0}


def test_float32_is_the_default_precision(monkeypatch: pytest.MonkeyPatch) -> None:
    measured = []
    monkeypatch.setattr(gemm, "measure_peak", lambda *asked: measured.append(asked) or 50.0)
    assert ensure_peak("m", 1) == peaks("m", 1) == peaks("m", 1, "float32") == {"numpy": 50.0}
    assert measured == [(1, "float32")]


@pytest.mark.parametrize(
    ("stderr", "reason"), [("Traceback\nValueError: no BLAS\n", "ValueError: no BLAS"), ("", "exit code 3")]
)
def test_a_product_that_cannot_be_measured_is_an_error_with_the_reason(
    stderr: str, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = subprocess.CompletedProcess([], 3, stdout="", stderr=stderr)
    monkeypatch.setattr(gemm.subprocess, "run", lambda *_, **__: done)
    with pytest.raises(UserError, match=rf"^The machine's arithmetic peak could not be measured with NumPy: {reason}$"):
        gemm.measure_peak(2)


def test_the_last_line_of_a_process_that_failed_is_the_reason() -> None:
    with pytest.raises(
        UserError, match=r"^The machine's arithmetic peak could not be measured with NumPy: TypeError: data type"
    ):
        gemm.measure_peak(1, "float33", 0.01)


def test_the_process_that_multiplies_uses_the_threads_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = {}

    def run(command: list[str], **options: Any) -> subprocess.CompletedProcess[str]:
        asked.update(options, command=command)
        return subprocess.CompletedProcess(command, 0, stdout="12.5\n", stderr="")

    monkeypatch.setattr(gemm.subprocess, "run", run)
    assert gemm.measure_peak(3, "float64", 0.2) == 12.5
    assert asked["command"] == [sys.executable, "-m", "steelyard.measure.gemm", "float64", "0.2"]
    assert {asked["env"][name] for name in gemm.THREAD_VARIABLES} == {"3"}
    assert (Path(asked["env"]["PYTHONPATH"]) / "steelyard" / "measure" / "gemm.py").is_file()
    assert asked["timeout"] == 120, "a process that hangs is ended"
    gemm.measure_peak(1)
    assert asked["command"][3:] == ["float32", "1.5"]


@pytest.mark.parametrize("text", ["[]", "3", "{", '"text"'])
def test_a_record_of_another_form_counts_as_none(text: str, tmp_path: Path) -> None:
    add_peak("m", 2, "float32", "numpy", 100.0)
    next(tmp_path.glob("machines/*.json")).write_text(text)
    assert peaks("m", 2) == {}


def test_the_peaks_of_a_machine_are_a_readable_file(tmp_path: Path) -> None:
    add_peak("m", 2, "float64", "numpy", 100.0)
    add_peak("m", 2, "float32", "numpy", 200.0)
    text = (tmp_path / "machines" / "m.peaks.json").read_text()
    assert json.loads(text) == {"float64, 2 threads": {"numpy": 100.0}, "float32, 2 threads": {"numpy": 200.0}}
    assert text.index("float32") < text.index("float64"), "sorted"
    assert len(text.splitlines()) > 2


def test_a_peak_below_one_gflop_is_stored_as_it_is() -> None:
    add_peak("m", 1, "float64", "numpy", 0.5)
    assert peaks("m", 1, "float64") == {"numpy": 0.5}


# VGG16 of Dai et al. 2022 in TensorFlow and PyTorch, in direct arithmetic; the P100's float32 peak is 9.3 TFLOP/s in its PCIe
# form and 10.6 in the other one, the V100's is 15.7.
@pytest.mark.parametrize(
    ("gflops", "of_gpu"), [(13_950, 9_300), (12_210, 9_300), (13_950, 10_600), (12_210, 10_600), (22_600, 15_700)]
)
def test_the_published_speeds_of_vgg16_on_gpus_are_results_with_a_note(gflops: float, of_gpu: float) -> None:
    error, note = peak.judge_on_gpu(gflops, of_gpu, convolves=True)
    assert error == ""
    assert note == (
        f"{gflops / 1000:.2f} TFLOP/s of direct arithmetic are more than this GPU can do ({of_gpu / 1000:.1f} in float32). "
        "That is possible only with convolutions that multiply less often, such as Winograd's"
    )


def test_a_gpu_that_convolves_faster_than_winograds_algorithm_allows_was_measured_wrongly() -> None:
    assert peak.judge_on_gpu(4 * 9_300, 9_300, convolves=True)[0] == ""
    error, note = peak.judge_on_gpu(4 * 9_300 + 1, 9_300, convolves=True)
    assert note == ""
    assert error == (
        "37.20 TFLOP/s of direct arithmetic are more than this GPU can do (9.3 in float32), and more than 4 times as much, the most "
        "that Winograd's convolutions save, so the measured time or the number of operations is wrong"
    )


def test_a_network_without_convolutions_cannot_exceed_the_peak_of_a_gpu() -> None:
    assert peak.judge_on_gpu(9_300, 9_300, convolves=False) == ("", "")
    error, note = peak.judge_on_gpu(9_301, 9_300, convolves=False)
    assert note == ""
    assert error.endswith("(9.3 in float32), so the measured time or the number of operations is wrong")
