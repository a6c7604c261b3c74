"""Faults struck for real: each gives one sentence and a recorded event, costs no sample, and stops nobody else."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
from finished_runs import LINE, Finished, contender, finished

from steelyard.inputs import case_inputs
from steelyard.measure import jobs, launch
from steelyard.plan import resolve
from steelyard.plan.options import Options
from steelyard.results import trials

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from finished_runs import Said, Steelyard

pytestmark = pytest.mark.end_to_end

ROOT = os.geteuid() == 0
MOUNTS = pytest.mark.skipif(
    not ROOT or sys.platform != "linux", reason="a disk of one's own can only be mounted by root"
)

# fault -> (kind of the recorded event, what the sentence says)
STRUCK = {
    "die": ("killed", "The worker was killed (signal 9)"),
    "hang": ("hung", "The worker wrote no event for 2 s and was stopped."),
    "nan": ("nan-loss", "The loss of training step 20 is nan."),
    "memory": ("out-of-memory", "Unable to allocate 1.00 PiB"),
    "import": ("crash", "No module named 'fake'"),
    "unsupported": ("unsupported", "The script says that this cannot be done."),
}


@pytest.fixture(scope="module")
def stricken(tmp_path_factory: pytest.TempPathFactory, shared_steelyard: Steelyard) -> Finished:
    """One run in which a contender falls to each fault, and another is well. Only read it."""
    home = tmp_path_factory.mktemp("stricken")
    knobs = ("--knob", f"fake.fault={','.join(STRUCK)}", "--silence", "2")
    return finished(
        home,
        shared_steelyard(
            home, "run", *LINE, "-f", "fake", "-f", "dummy", *knobs, "--rounds", "2", "--no-certify", "--json"
        ),
    )


@pytest.mark.parametrize("fault", STRUCK)
def test_a_fault_is_said_in_one_sentence_and_recorded(stricken: Finished, fault: str) -> None:
    kind, sentence = STRUCK[fault]
    said = [line for line in stricken.said.splitlines() if sentence in line]
    assert len(said) == 1
    assert f"failed ({kind})" in said[0]
    (folder,) = stricken.folder.glob(f"trials/*fault={fault}*")
    last = json.loads((folder / "events.jsonl").read_text().splitlines()[-1])
    assert (last["event"], last["kind"]) == ("error", kind)
    assert sentence in last["message"]
    assert sentence in contender(stricken.result, f"fault={fault}")["failure"]


@pytest.mark.parametrize("fault", sorted(STRUCK.keys() - {"import"}))
def test_blocks_that_were_finished_before_a_fault_can_be_read(stricken: Finished, fault: str) -> None:
    (folder,) = stricken.folder.glob(f"trials/*fault={fault}*")
    trial = trials.read(folder)
    assert sum(block.steps for block in trial.blocks) >= 16
    steps = trial.steps_ns("cached", ("first", "warm-up"))
    assert len(steps) >= 16
    assert set(steps.tolist()) == {10e6}
    assert np.isfinite(trial.losses("cached")[:16]).all()


def test_the_others_go_on(stricken: Finished) -> None:
    assert contender(stricken.result, "dummy/scripted")["speeds"]["cached"]["processes"] == 2


def test_going_on_gives_the_fallen_another_chance_and_repeats_nobody_else(
    stricken: Finished, steelyard: Steelyard, home: Path
) -> None:
    shutil.copytree(stricken.home, home)
    run = home / "runs" / stricken.folder.name
    path = run / "run.json"
    record = json.loads(path.read_text())
    (group,) = record["plan"]["groups"]
    kept = ("none", "nan", "memory")  # a worker that hangs would hang again
    group["variants"] = [v for v in group["variants"] if v["case"]["settings"]["knobs"].get("fault") in kept]
    path.write_text(json.dumps(record))
    before = {each.name for each in run.glob("trials/*")}
    done = finished(home, steelyard("run", "--resume", "latest", "--plain", "--json"))
    added = {each.name for each in run.glob("trials/*")} - before
    assert len(added) == 2
    assert all(name.startswith("r01.1-line_small_fake") for name in added)
    assert contender(done.result, "dummy/scripted")["speeds"]["cached"]["processes"] == 2


def test_an_interpreter_that_vanishes_in_the_middle_is_named(
    steelyard: Steelyard, home: Path, tmp_path: Path, cache: Path
) -> None:
    python = tmp_path / "env" / "bin" / "python"
    _interpreter_that_removes_itself(python)
    env = {
        "STEELYARD_RUNS": str(home),
        "STEELYARD_CACHE": str(cache),
        "PYTHONPATH": str(Path(trials.__file__).parents[2]),
    }
    command = [
        str(python),
        "-m",
        "steelyard",
        "run",
        *LINE,
        "-f",
        "fake",
        "-f",
        "dummy",
        "--rounds",
        "2",
        "--no-certify",
    ]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, **env}, check=False, timeout=60)
    assert "Traceback" not in done.stderr
    assert f"The interpreter {python} could not be started (No such file or directory)" in done.stderr
    errors = [trials.read(folder).error for folder in home.glob("runs/*/trials/*")]
    assert [error[0] for error in errors if error] == ["crash", "crash"]
    again = finished(home, steelyard("run", "--resume", "latest", "--plain", "--json"))
    assert {each["speeds"]["cached"]["processes"] for each in again.result["comparisons"][0]["contenders"]} == {2}


def _interpreter_that_removes_itself(python: Path) -> None:
    """A virtual environment by hand: its link to the interpreter goes as soon as the orchestrator has started."""
    python.parent.mkdir(parents=True)
    python.symlink_to(Path(sys.executable).resolve())
    (python.parent.parent / "pyvenv.cfg").write_text(f"home = {Path(sys.executable).resolve().parent}\n")
    packages = python.parent.parent / "lib" / f"python{sys.version_info[0]}.{sys.version_info[1]}" / "site-packages"
    packages.mkdir(parents=True)
    own = next(path for path in sys.path if path.endswith("site-packages"))
    (packages / "own.pth").write_text(
        f"{own}\nimport os; os.path.lexists({str(python)!r}) and os.unlink({str(python)!r})\n"
    )


def test_a_full_disk_ends_the_run_in_one_sentence(steelyard: Steelyard, home: Path) -> None:
    done = steelyard(
        "run", *LINE, "-f", "fake", "-f", "dummy", "--knob", "fake.fault=disk", "--rounds", "2", "--no-certify"
    )
    assert done.returncode == 2
    assert "is full. Free some space" in done.stderr.splitlines()[-1]
    (run,) = home.glob("runs/*/run.json")
    assert json.loads(run.read_text())["state"] == "interrupted"
    (fallen,) = home.glob("runs/*/trials/*fake*")
    trial = trials.read(fallen)
    assert trial.error is not None
    assert trial.error[0] == "disk-full"
    assert len(trial.steps_ns("cached", ("first", "warm-up"))) >= 16


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Callable[[str], Path]]:
    """Mount a small disk: `disk("64m")`; again to give it another size, or `disk("ro")` to let nobody write."""
    folder = tmp_path / "disk"

    def mount(options: str) -> Path:
        if options == "ro":
            subprocess.run(["mount", "-o", "remount,ro", str(folder)], check=True)
        elif folder.exists():
            subprocess.run(["mount", "-o", f"remount,size={options}", str(folder)], check=True)
        else:
            folder.mkdir()
            subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={options}", "tmpfs", str(folder)], check=True)
        return folder

    yield mount
    if folder.exists():
        subprocess.run(["umount", "-l", str(folder)], check=True)


@MOUNTS
def test_a_disk_that_is_nearly_full_is_seen_before_a_process_starts_and_the_run_goes_on_later(
    disk: Callable[[str], Path], steelyard: Steelyard
) -> None:
    folder = disk("64m")
    asked = ("run", *LINE, "-f", "fake", "-f", "dummy", "--rounds", "2", "--no-certify")
    done = steelyard(*asked, STEELYARD_RUNS=str(folder))
    assert done.returncode == 2
    assert "MiB left. Free at least 200 MiB, then go on with: steelyard run --resume" in done.stderr
    disk("400m")
    again = finished(folder, steelyard("run", "--resume", "latest", "--plain", "--json", STEELYARD_RUNS=str(folder)))
    assert {each["speeds"]["cached"]["processes"] for each in again.result["comparisons"][0]["contenders"]} == {2}


@MOUNTS
def test_a_disk_that_fills_up_under_a_worker_costs_no_sample(disk: Callable[[str], Path], steelyard: Steelyard) -> None:
    folder = disk("210m")
    asked = ("run", *LINE, "-f", "fake", "-f", "dummy", "--knob", "fake.fault=fill", "--rounds", "2", "--no-certify")
    done = steelyard(*asked, STEELYARD_RUNS=str(folder))
    assert done.returncode == 2
    assert "steelyard: " in done.stderr
    assert (
        "is full. Free some space, then" in done.stderr
        or "Mend that, then go on with: steelyard run --resume" in done.stderr
        or "an interrupted run goes on with: steelyard run --resume" in done.stderr
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
def test_a_worker_that_finds_the_disk_full_is_told_from_one_that_crashed(
    disk: Callable[[str], Path], cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STEELYARD_CACHE", str(cache))
    # Short steps, so that the events after the fault need more than what is left of their file's last page.
    knobs = ("fault=fill", "step_us=1000")
    asked = Options(workloads=("line",), frameworks=("fake",), workload_folders=(LINE[1],), knobs=knobs)
    plan = resolve.plan(asked)
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
    shutil.copytree(measured.home / "runs", folder / "runs", ignore=shutil.ignore_patterns("index.sqlite*"))
    disk("ro")
    env = {"STEELYARD_RUNS": str(folder)}
    done = steelyard("report", "--output", str(tmp_path / "page.html"), "--json", **env)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["comparisons"] == measured.result["comparisons"]
    assert "the event files were read instead" in done.stderr
    refused = steelyard("report", **env)
    assert refused.returncode == 2
    assert "cannot be written (Read-only file system). Name another with --output." in refused.stderr
    begun = steelyard("run", *LINE, "-f", "fake", **env)
    assert begun.returncode == 2
    assert "cannot be created (Read-only file system). Name another with --runs." in begun.stderr
    resumed = steelyard("run", "--resume", "latest", **env)
    assert resumed.returncode == 2
    assert "Read-only file system" in resumed.stderr
    assert json.loads(steelyard("list", "runs", "--json", **env).stdout)[0]["state"] == "complete"


@pytest.mark.parametrize("argv", [("run", *LINE, "-f", "fake"), ("certify", *LINE[:4], "-f", "fake")])
def test_a_cache_that_cannot_be_written_is_named_before_anything_is_made(
    argv: tuple[str, ...], steelyard: Steelyard, home: Path, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("")
    done = steelyard(*argv, STEELYARD_CACHE=str(tmp_path / "file" / "cache"))
    assert done.returncode == 2
    assert "cannot be written (Not a directory). Name another with the variable STEELYARD_CACHE." in done.stderr
    assert not home.exists()


def _garbage(path: Path) -> None:
    path.write_bytes(b"this is no database" * 500)


def _truncated(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def _older(path: Path) -> None:
    with sqlite3.connect(path) as base:
        base.execute("PRAGMA user_version = 77")
    base.close()


@pytest.mark.parametrize("damage", [_garbage, _truncated, _older])
def test_a_corrupted_index_is_rebuilt_from_the_event_files(
    damage: Callable[[Path], None], copied: Finished, said: Said
) -> None:
    damage(copied.folder.parent / "index.sqlite")
    code, out, err = said("report", "--json")
    assert code == 0
    assert json.loads(out)["comparisons"] == copied.result["comparisons"]
    assert "it was rebuilt from the event files, nothing is lost." in err
    code, out, err = said("report", "--json")
    assert (code, err) == (0, "")
    assert json.loads(out)["comparisons"] == copied.result["comparisons"]


@pytest.mark.parametrize("name", ["events.jsonl", "job.json"])
def test_a_damaged_record_is_named_and_costs_no_other(name: str, copied: Finished, said: Said) -> None:
    for path in copied.folder.parent.glob("index.sqlite*"):
        path.unlink()
    damaged = min(copied.folder.glob("trials/*fake*"))
    lines = (damaged / name).read_text().splitlines(keepends=True)
    (damaged / name).write_text("".join([*lines[:2], "\x00\x00{{not json\n", *lines[3:]]))
    code, out, err = said("report", "--json")
    assert code == 0
    assert f"Trial {damaged.name} cannot be read" in err
    assert f"Delete {damaged} to leave it out." in err
    result = json.loads(out)
    assert contender(result, "fake/scripted")["speeds"]["cached"]["processes"] == 2
    assert contender(result, "dummy/scripted,step_us=12000")["speeds"]["cached"]["processes"] == 3


def test_a_damaged_record_that_no_index_knows_yet_is_named(copied: Finished, said: Said) -> None:
    whole = min(copied.folder.glob("trials/*fake*"))
    damaged = whole.with_name(whole.name.replace("r01.0", "r04.0"))
    shutil.copytree(whole, damaged)
    (damaged / "events.jsonl").write_text("garbage\n")
    _, out, err = said("report", "--json")
    assert f"Trial {damaged.name} cannot be read" in err
    assert json.loads(out)["comparisons"] == copied.result["comparisons"]


def test_samples_that_end_too_early_are_named_and_can_be_left_out(copied: Finished, said: Said) -> None:
    damaged = min(copied.folder.glob("trials/*fake*"))
    (damaged / "samples.i64").write_bytes((damaged / "samples.i64").read_bytes()[:-80])
    sentence = said.refused("report")
    assert f"{damaged / 'samples.i64'} ends too early" in sentence
    assert f"Delete {damaged}" in sentence
    shutil.rmtree(damaged)
    assert said("report")[0] == 0


def test_a_damaged_run_is_named_and_the_other_runs_are_listed(copied: Finished, said: Said) -> None:
    other = copied.folder.with_name("20200101-000000-first-look")
    shutil.copytree(copied.folder, other)
    (copied.folder / "run.json").write_text('{"format": 1, "pl')
    states = {row["run"]: row["state"] for row in json.loads(said("list", "runs", "--json")[1])}
    assert states == {copied.folder.name: "unreadable", other.name: "complete"}
    assert f"{copied.folder / 'run.json'} cannot be read" in said.refused("report", copied.folder.name)
    (copied.folder.parent / "index.sqlite").unlink()
    assert said("report", other.name)[0] == 0
