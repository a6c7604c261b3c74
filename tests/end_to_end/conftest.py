"""One finished run that many tests read, on a machine whose noise floor is known."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING

import pytest
from finished_runs import LINE, Finished, Said, finished

from steelyard import host
from steelyard.statistics.calibration import NoiseFloor

if TYPE_CHECKING:
    from pathlib import Path

    from finished_runs import Steelyard


@pytest.fixture(scope="session")
def quiet_machine(cache: Path) -> NoiseFloor:
    """Put down that this machine was calibrated and found quiet, so that few rounds decide."""
    floor = NoiseFloor(0.002, 8, 9)
    path = cache / "machines" / f"{host.describe().fingerprint()}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"noise": floor.to_dict()}), encoding="utf-8")
    return floor


@pytest.fixture(scope="session")
def measured(
    tmp_path_factory: pytest.TempPathFactory, shared_steelyard: Steelyard, quiet_machine: NoiseFloor
) -> Finished:
    """Three contenders without noise: Fake and Dummy at 10 ms, and Dummy at 12 ms; certified, three rounds. Only read it."""
    home = tmp_path_factory.mktemp("measured")
    knobs = ("--knob", "fake.step_us=10000", "--knob", "dummy.step_us=10000,12000")
    return finished(
        home, shared_steelyard(home, "run", *LINE, "-f", "fake", "-f", "dummy", *knobs, "--rounds", "3", "--json")
    )


@pytest.fixture(scope="session")
def unproved(
    tmp_path_factory: pytest.TempPathFactory, shared_steelyard: Steelyard, quiet_machine: NoiseFloor
) -> Finished:
    """Two contenders by a fixed protocol and without certificates. Only read it."""
    home = tmp_path_factory.mktemp("unproved")
    knobs = ("--knob", "fake.step_us=1000", "--knob", "dummy.step_us=2000")
    options = ("--protocol", "fixed:10+200", "--no-certify", "--json")
    return finished(home, shared_steelyard(home, "run", *LINE, "-f", "fake", "-f", "dummy", *knobs, *options))


@pytest.fixture
def copied(measured: Finished, home: Path) -> Finished:
    """A copy of the finished run that a test may damage; the `steelyard` fixture reads it."""
    shutil.copytree(measured.home, home)
    return Finished(home, home / "runs" / measured.folder.name, measured.result, measured.said)


@pytest.fixture
def said(capsys: pytest.CaptureFixture[str], home: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> Said:
    """The command line in this process, with temporary folders."""
    monkeypatch.setenv("STEELYARD_RUNS", str(home))
    monkeypatch.setenv("STEELYARD_CACHE", str(cache))
    monkeypatch.setenv("COLUMNS", "160")
    return Said(capsys)
