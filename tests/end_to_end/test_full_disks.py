"""Disks that are full or cannot be written: one message, and no sample is lost."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from finished_runs import LINE, MOUNTS, Finished, contender, finished

from steelyard.inputs import case_inputs
from steelyard.measure import jobs, launch
from steelyard.plan import resolve
from steelyard.plan.options import Options
from steelyard.results import trials

if TYPE_CHECKING:
    from collections.abc import Callable

    from finished_runs import Steelyard

pytestmark = pytest.mark.end_to_end


def test_a_full_disk_ends_the_run_with_one_message(steelyard: Steelyard, data_folder: Path) -> None:
    done = steelyard(
        "run", *LINE, "-f", "fake", "-f", "dummy", "--knob", "fake.fault=disk", "--rounds", "2", "--no-certify"
    )
    assert done.returncode == 2
    assert "is full. Free some space" in done.stderr.splitlines()[-1]
    (run,) = data_folder.glob("runs/*/run.json")
    assert json.loads(run.read_text())["state"] == "interrupted"
    (failed,) = data_folder.glob("runs/*/trials/*fake*")
    trial = trials.read(failed)
    assert trial.error is not None
    assert trial.error[0] == "disk-full"
    assert len(trial.steps_ns("cached", ("first", "warm-up"))) >= 16


@MOUNTS
def test_a_nearly_full_disk_stops_the_run_before_a_process_starts_and_the_run_can_be_continued(
    disk: Callable[[str], Path], steelyard: Steelyard
) -> None:
    folder = disk("64m")
    argv = ("run", *LINE, "-f", "fake", "-f", "dummy", "--rounds", "2", "--no-certify")
    done = steelyard(*argv, STEELYARD_RUNS=str(folder))
    assert done.returncode == 2
    assert "MiB left. Free at least 200 MiB, then continue with: steelyard run --resume" in done.stderr
    disk("400m")
    again = finished(folder, steelyard("run", "--resume", "latest", "--plain", "--json", STEELYARD_RUNS=str(folder)))
    assert {each["speeds"]["cached"]["processes"] for each in again.result["comparisons"][0]["contenders"]} == {2}


@MOUNTS
def test_a_disk_that_fills_up_during_a_process_loses_no_sample(
    disk: Callable[[str], Path], steelyard: Steelyard
) -> None:
    folder = disk("210m")
    argv = ("run", *LINE, "-f", "fake", "-f", "dummy", "--knob", "fake.fault=fill", "--rounds", "2", "--no-certify")
    done = steelyard(*argv, STEELYARD_RUNS=str(folder))
    assert done.returncode == 2
    assert "steelyard: " in done.stderr
    assert (
        "is full. Free some space, then" in done.stderr
        or "Fix this, then continue with: steelyard run --resume" in done.stderr
        or "To continue an interrupted run: steelyard run --resume" in done.stderr
    )
    (filler,) = folder.glob("runs/*/trials/*fake*/filler")
    filler.unlink()
    trial = trials.read(filler.parent)
    assert len(trial.steps_ns("cached", ("first", "warm-up"))) >= 16
    (run,) = folder.glob("runs/*/run.json")
    text = run.read_text().replace("fault=fill", "fault=none")
    run.write_text(text.replace('"fault": "fill"', '"fault": "none"'))
    again = finished(folder, steelyard("run", "--resume", "latest", "--plain", "--json", STEELYARD_RUNS=str(folder)))
    assert contender(again.result, "fault=none")["speeds"]["cached"]["processes"] == 2


@MOUNTS
def test_a_full_disk_is_distinguished_from_a_crash_of_the_worker(
    disk: Callable[[str], Path], cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STEELYARD_CACHE", str(cache))
    # With short steps, the events after the fault need more than the rest of their file's last page.
    knobs = ("fault=fill", "step_us=1000")
    plan = resolve.plan(Options(workloads=("line",), frameworks=("fake",), workload_folders=(LINE[1],), knobs=knobs))
    (variant,) = plan.variants
    (shared,) = case_inputs.prepare(plan, lambda progress: None).values()
    job = jobs.measuring(plan, variant, shared, 1, 0, disk("8m") / "trials" / "r01.0-fake")
    trial = launch.launch(job, Path(sys.executable), lambda event: None, launch.Guard(30))
    assert trial.error is not None
    assert trial.error[0] == "disk-full"
    assert f"The disk that holds {job.folder} is full." in trial.error[1]
    assert len(trial.steps_ns("cached", ("first", "warm-up"))) >= 16


@MOUNTS
def test_runs_on_a_read_only_disk_can_still_be_reported(
    disk: Callable[[str], Path], measured: Finished, steelyard: Steelyard, tmp_path: Path
) -> None:
    folder = disk("64m")
    shutil.copytree(measured.data_folder / "runs", folder / "runs", ignore=shutil.ignore_patterns("index.sqlite*"))
    disk("ro")
    env = {"STEELYARD_RUNS": str(folder)}
    done = steelyard("report", "--output", str(tmp_path / "page.html"), "--json", **env)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["comparisons"] == measured.result["comparisons"]
    failed = steelyard("report", **env)
    assert failed.returncode == 2
    assert "cannot be written (Read-only file system). Name another with --output." in failed.stderr
    started = steelyard("run", *LINE, "-f", "fake", **env)
    assert started.returncode == 2
    assert "cannot be created (Read-only file system). Choose another folder with --runs." in started.stderr
    resumed = steelyard("run", "--resume", "latest", **env)
    assert resumed.returncode == 2
    assert "Read-only file system" in resumed.stderr
    assert json.loads(steelyard("list", "runs", "--json", **env).stdout)[0]["state"] == "complete"


@pytest.mark.parametrize("argv", [("run", *LINE, "-f", "fake"), ("certify", *LINE[:4], "-f", "fake")])
def test_a_cache_that_cannot_be_written_is_reported_before_anything_is_created(
    argv: tuple[str, ...], steelyard: Steelyard, data_folder: Path, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("")
    done = steelyard(*argv, STEELYARD_CACHE=str(tmp_path / "file" / "cache"))
    assert done.returncode == 2
    assert "cannot be written (Not a directory). Set STEELYARD_CACHE to another folder." in done.stderr
    assert not data_folder.exists()
