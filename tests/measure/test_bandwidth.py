"""The bandwidth of the machine's memory: how it is measured and stored, and when it is measured again."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from measure.scripted_clock import Seconds
from measure.scripted_session import ScriptedSession, session, steady, write_trial
from steelyard.errors import UserError
from steelyard.measure import bandwidth, gemm, jobs, peak
from steelyard.plan.traffic import Traffic
from steelyard.results import record
from steelyard.results.round_results import RoundResults

GIB = 2**30


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STEELYARD_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(gemm, "measure_peak", lambda *_: 100.0)


def test_no_cache_holds_an_array() -> None:
    assert bandwidth.array_bytes(36 * 2**20, 8 * GIB) == 4 * 36 * 2**20
    assert bandwidth.array_bytes(0, 8 * GIB) == 4 * 64 * 2**20, "of caches of unknown size"


def test_arrays_that_would_fill_the_memory_are_refused() -> None:
    with pytest.raises(
        UserError, match=r"^The bandwidth of memory was not measured: this takes 8\.0 GiB, and only 15\.0 GiB are"
    ):
        bandwidth.array_bytes(GIB, 15 * GIB)
    assert bandwidth.array_bytes(GIB, 16 * GIB) == 4 * GIB


def test_each_element_of_a_sweep_is_three_transfers(monkeypatch: pytest.MonkeyPatch) -> None:
    # Each chunk takes one second of this clock.
    monkeypatch.setattr(bandwidth, "time", Seconds())
    found = bandwidth.sweeps(2 * bandwidth.CHUNK, 3.0)
    assert found == [pytest.approx(3 * 4 * bandwidth.CHUNK / 1e9)] * bandwidth.WINDOWS


def test_the_bandwidth_is_measured_in_processes_of_its_own() -> None:
    assert 0.1 < bandwidth.measure(2, 2**22, 0.05) < 10_000


@pytest.mark.parametrize(
    ("stderr", "reason"), [("Traceback\nMemoryError: no room\n", "MemoryError: no room"), ("", "exit code 3")]
)
def test_a_failure_is_one_sentence(stderr: str, reason: str, monkeypatch: pytest.MonkeyPatch) -> None:
    done = subprocess.CompletedProcess([], 3, stdout="", stderr=stderr)
    monkeypatch.setattr(gemm.subprocess, "run", lambda *_, **__: done)
    with pytest.raises(UserError, match=rf"^The bandwidth of memory could not be measured: {reason}$"):
        bandwidth.measure(2, 2**22)


def test_each_process_has_one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: dict[str, Any] = {}

    def run(command: list[str], **options: Any) -> subprocess.CompletedProcess[str]:
        asked.update(options, command=command)
        return subprocess.CompletedProcess(command, 0, stdout="12.5\n", stderr="")

    monkeypatch.setattr(gemm.subprocess, "run", run)
    assert bandwidth.measure(3, 1000) == 12.5
    assert asked["command"] == [
        sys.executable,
        "-m",
        "steelyard.measure.bandwidth",
        "3",
        "1000",
        str(bandwidth.SECONDS),
    ]
    assert {asked["env"][name] for name in gemm.THREAD_VARIABLES} == {"1"}
    assert asked["timeout"] == 120


def checked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, gbps: list[float], held: int = 2**40) -> ScriptedSession:
    """Return a session after the check of its peaks, in which a step of 10 ms moved 100 MB; `gbps`: what is measured, in turn."""

    def measured(*_: object) -> float:
        if not gbps:
            raise UserError("The bandwidth of memory could not be measured: no room")
        return gbps.pop(0)

    monkeypatch.setattr(bandwidth, "measure", measured)
    run = session(tmp_path / "run", steady, frameworks=("fake",), threads=(3,))
    group = replace(run.plan.groups[0], traffic=Traffic(10**8, 0, held, 0))
    run = replace(run, plan=replace(run.plan, groups=(group,)))
    record.update(run.folder, host={"cores_usable": 2, "caches": {"L2": 1000, "L3": 2**20}})
    check(run)
    return run


def check(run: ScriptedSession) -> None:
    results = RoundResults()
    (variant,) = run.plan.variants
    folder = jobs.trial_folder(run.folder, 1, len(list((run.folder / "trials").glob("*"))), variant)
    results.add(
        write_trial(jobs.measuring(run.plan, variant, run.inputs_of(variant.case), 1, 0, folder), lambda *_: 10.0)
    )
    peak.check(run, results)


def test_the_bandwidth_is_recorded_by_the_number_of_threads_and_measured_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = checked(tmp_path, monkeypatch, [12.0])
    assert record.read(run.folder).bandwidth == {"3": 12.0}
    check(run)  # there is nothing left to measure
    assert record.read(run.folder).bandwidth == {"3": 12.0}
    assert run.messages == []


def test_it_is_measured_again_before_more_than_all_of_it_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = checked(tmp_path, monkeypatch, [8.0, 11.0])  # the step moves 10 GB/s at least
    check(run)
    assert record.read(run.folder).bandwidth == {"3": 11.0}


def test_data_that_a_cache_holds_is_no_reason_to_measure_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = checked(tmp_path, monkeypatch, [8.0, 11.0], held=2**20)
    check(run)
    assert record.read(run.folder).bandwidth == {"3": 8.0}


def test_a_bandwidth_that_cannot_be_measured_ends_no_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = checked(tmp_path, monkeypatch, [])
    assert record.read(run.folder).bandwidth == {}
    assert record.read(run.folder).peak == {"float32, 3 threads": {"numpy": 100.0}}
    assert run.messages == ["The bandwidth of memory could not be measured: no room"]


def test_without_a_finished_round_nothing_is_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bandwidth, "measure", lambda *_: pytest.fail("measured"))
    run = session(tmp_path / "run", steady, frameworks=("fake",))
    peak.check(run, RoundResults())
    assert record.read(run.folder).bandwidth == {}
