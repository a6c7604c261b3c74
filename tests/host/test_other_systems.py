"""Planning and the doctor on systems without /proc, affinity and control groups, such as macOS."""

import json
import os
import platform
import sys
from dataclasses import asdict
from pathlib import Path

import pytest

from steelyard import host
from steelyard.host import processes
from steelyard.host.machine import LINUX_ONLY
from steelyard.measure import doctor
from steelyard.plan import memory, resolve
from steelyard.plan.options import Options

REPOSITORY = Path(__file__).parents[2]
LINE = str(REPOSITORY / "tests" / "workloads")


@pytest.fixture
def macos(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Hide what only Linux has; returns a root folder without /proc and /sys."""

    def missing() -> None:
        raise OSError

    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    monkeypatch.delattr(os, "sched_setaffinity", raising=False)
    monkeypatch.setattr(sys, "platform", "darwin")
    monkeypatch.setattr(platform, "system", lambda: "Darwin")
    monkeypatch.setattr(platform, "freedesktop_os_release", missing)
    monkeypatch.setattr(processes, "PROC", tmp_path / "proc")
    monkeypatch.setenv("STEELYARD_CACHE", str(tmp_path / "cache"))
    return tmp_path


def test_affinity_limits_the_usable_cores_where_it_exists(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {3, 5, 7}, raising=False)
    assert host.usable_cores() == 3


@pytest.mark.usefixtures("macos")
def test_without_affinity_every_core_is_usable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: 12)
    assert host.usable_cores() == 12
    monkeypatch.setattr(os, "cpu_count", lambda: None)
    assert host.usable_cores() == 1


def test_affinity_is_read_in_one_place_only() -> None:
    found = [
        path.name for path in (REPOSITORY / "src/steelyard").rglob("*.py") if "sched_getaffinity" in path.read_text()
    ]
    assert found == ["resources.py"]


def test_a_machine_is_described_with_reasons_for_what_is_not_read(macos: Path) -> None:
    machine = host.describe(macos)
    assert set(machine.unknown) == set(LINUX_ONLY)
    assert set(machine.unknown.values()) == {"not read on Darwin"}
    assert not any(getattr(machine, name) for name in LINUX_ONLY)
    assert machine.cores_usable == os.cpu_count()
    assert machine.memory_bytes > 0
    assert machine.cpu_model
    assert machine.system
    json.dumps(asdict(machine))
    assert len(machine.fingerprint()) == 16


@pytest.mark.usefixtures("macos")
def test_a_run_is_planned_with_one_thread_per_core() -> None:
    planned = resolve.plan(Options(workloads=("line",), frameworks=("fake",), workload_folders=(LINE,)))
    assert {case.settings.threads for group in planned.groups for case in group.cases} == {os.cpu_count()}
    memory.check(planned)


def test_the_doctor_gives_every_finding(macos: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "describe", lambda: host.describe(macos))
    monkeypatch.setattr(doctor, "registry", lambda: doctor.Finding("registry", "ok", "Not checked by this test."))
    monkeypatch.setattr(doctor, "NOISE_SAMPLE_S", 0.1)
    findings = {finding.name: finding for finding in doctor.examine()}
    assert len(findings) == 13
    assert findings["host noise"].sentence == "Unknown: host noise is measured on Linux only, not on darwin."
    assert findings["frequency"].sentence == "No governor: not read on Darwin."
    assert all(finding.advice or finding.state == "ok" for finding in findings.values())
