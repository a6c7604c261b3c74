"""Peak memory of the worker by phase, and the limit that it may have."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from steelyard_worker import memory
from steelyard_worker.memory import Peaks, resident_bytes
from steelyard_worker.protocol import Refusal

MB = 10**6
LINUX = pytest.mark.skipif(
    not Path("/proc/self/clear_refs").exists(), reason="peaks of memory begin again on Linux only"
)


class Counter:
    """An adapter that counts device memory."""

    def __init__(self, *peaks: int) -> None:
        self.peaks = list(peaks)

    def peak_bytes(self) -> int:
        return self.peaks.pop(0)


@pytest.fixture
def process(tmp_path: Path) -> Path:
    """Return the folder of a process whose peak begins again only if `clear_refs` is a file."""
    (tmp_path / "clear_refs").touch()
    return tmp_path


def peak(process: Path, kib: int) -> None:
    (process / "status").write_text(f"Name:\tpython\nVmHWM:\t  {kib} kB\nVmRSS:\t  7 kB\n")


def resident(peaks: Peaks) -> dict[str, int | None]:
    return {each["name"]: each["resident_bytes"] for each in peaks.records()}


def test_each_phase_has_its_own_peak_and_the_process_the_highest(process: Path) -> None:
    peaks = Peaks(process=process)
    for name, kib in (("import", 100), ("build", 300), ("counted", 200), ("counted", 250), ("counted", 150)):
        peak(process, kib)
        peaks.end(name)
    assert resident(peaks) == {"import": 100 * 1024, "build": 300 * 1024, "counted": 250 * 1024}
    assert peaks.resident_bytes == 300 * 1024
    assert (process / "clear_refs").read_text() == "5"


def test_where_a_peak_cannot_begin_again_only_a_higher_one_is_known(process: Path) -> None:
    (process / "clear_refs").unlink()
    (process / "clear_refs").mkdir()
    peaks = Peaks(process=process)
    for name, kib in (("import", 100), ("build", 300), ("counted", 300), ("evaluation", 301)):
        peak(process, kib)
        peaks.end(name)
    assert resident(peaks) == {"import": 100 * 1024, "build": 300 * 1024, "counted": None, "evaluation": 301 * 1024}


def test_device_memory_is_that_of_the_adapter(process: Path) -> None:
    peaks = Peaks(process=process)
    peak(process, 1)
    peaks.end("import")
    peaks.of_device(Counter(7, 7, 9))
    for name in ("build", "warm-up", "counted"):
        peaks.end(name)
    assert [each["device_bytes"] for each in peaks.records()] == [None, 7, None, 9]
    assert peaks.device_bytes == 9


def test_a_process_above_its_limit_is_out_of_memory(process: Path) -> None:
    peaks = Peaks(limit_bytes=200 * 1024, process=process)
    peak(process, 200)
    peaks.end("build")
    peak(process, 201)
    with pytest.raises(
        Refusal, match=r"until the end of its phase 'counted', more than its limit of 0\.0002048 GB"
    ) as e:
        peaks.end("counted")
    assert e.value.kind == "out-of-memory"
    assert resident(peaks)["counted"] == 201 * 1024, "the peak is recorded nevertheless"


def test_without_the_counter_of_linux_the_peak_is_that_of_getrusage(tmp_path: Path) -> None:
    used = memory.resource.getrusage(memory.resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    assert resident_bytes(tmp_path) >= used > 10 * MB


@LINUX
def test_memory_that_was_freed_is_not_in_the_peak_of_the_next_phase() -> None:
    peaks = Peaks()
    peaks.end("before")
    block = np.ones(200 * MB // 8)
    peaks.end("with 200 MB")
    del block
    peaks.end("freed")
    peaks.end("after")
    before, filled, freed, after = (each["resident_bytes"] for each in peaks.records())
    assert filled > after + 180 * MB
    assert freed > after + 180 * MB, "the block was still there when this phase began"
    assert peaks.resident_bytes == max(before, filled, freed)
