"""Real faults: each gives one message and one recorded event, loses no sample, and does not stop the other frameworks."""

from __future__ import annotations

import json
import os
import re
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from finished_runs import LINE, MOUNTS, Finished, contender, finished

from steelyard.inputs import case_inputs
from steelyard.measure import jobs, launch
from steelyard.plan import resolve
from steelyard.plan.options import Options
from steelyard.results import trials

if TYPE_CHECKING:
    from collections.abc import Callable

    from finished_runs import CommandLine, Steelyard

pytestmark = pytest.mark.end_to_end

# fault -> (kind of the recorded event, part of the message)
FAULTS = {
    "die": ("killed", "The worker was killed (signal 9)"),
    "hang": ("hung", "The worker wrote no event for 2 s and was stopped."),
    "nan": ("nan-loss", "The loss of training step 20 is nan."),
    "memory": ("out-of-memory", "Unable to allocate 1.00 PiB"),
    "import": ("crash", "No module named 'fake'"),
    "unsupported": ("unsupported", "The script says that this cannot be done."),
}


@pytest.fixture(scope="module")
def faulty(tmp_path_factory: pytest.TempPathFactory, shared_steelyard: Steelyard) -> Finished:
    """A run in which Fake has every fault once, and Dummy has none. Tests must not change it."""
    data_folder = tmp_path_factory.mktemp("faulty")
    knobs = ("--knob", f"fake.fault={','.join(FAULTS)}", "--silence", "2")
    return finished(
        data_folder,
        shared_steelyard(
            data_folder, "run", *LINE, "-f", "fake", "-f", "dummy", *knobs, "--rounds", "2", "--no-certify", "--json"
        ),
    )


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_reported_in_one_line_and_recorded(faulty: Finished, fault: str) -> None:
    kind, message = FAULTS[fault]
    (line,) = (line for line in faulty.stderr.splitlines() if message in line)
    assert f"failed ({kind})" in line
    (folder,) = faulty.folder.glob(f"trials/*fault={fault}*")
    last = json.loads((folder / "events.jsonl").read_text().splitlines()[-1])
    assert (last["event"], last["kind"]) == ("error", kind)
    assert message in last["message"]
    assert message in contender(faulty.result, f"fault={fault}")["failure"]


@pytest.mark.parametrize("fault", sorted(FAULTS.keys() - {"import"}))
def test_blocks_that_were_finished_before_a_fault_can_be_read(faulty: Finished, fault: str) -> None:
    (folder,) = faulty.folder.glob(f"trials/*fault={fault}*")
    trial = trials.read(folder)
    assert sum(block.steps for block in trial.blocks) >= 16
    steps = trial.steps_ns("cached", ("first", "warm-up"))
    assert len(steps) >= 16
    assert set(steps.tolist()) == {10e6}
    assert np.isfinite(trial.losses("cached")[:16]).all()


def test_a_run_in_which_every_process_died_has_failed(steelyard: Steelyard, data_folder: Path) -> None:
    done = steelyard("run", *LINE, "-f", "fake", "--knob", "fake.fault=die", "--rounds", "2", "--no-certify")
    assert done.returncode == 1
    assert "The worker was killed (signal 9)" in done.stdout
    assert "steelyard: Every process of this run failed, so there is no result." in done.stderr
    assert Path(done.stdout.splitlines()[-1]).is_file()
    (run,) = data_folder.glob("runs/*/run.json")
    assert json.loads(run.read_text())["state"] == "failed"
    assert [row["state"] for row in json.loads(steelyard("list", "runs", "--json").stdout)] == ["failed"]


def test_a_process_that_computes_something_else_than_was_certified_has_no_result(
    steelyard: Steelyard, data_folder: Path
) -> None:
    """It passes its certificate, and has other losses only where its time is taken."""
    settings = (*LINE, "--rounds", "2", "--protocol", "fixed:3+5", "--plain")
    alone = steelyard("run", *settings, "-f", "fake", "--knob", "fake.fault=timed")
    assert alone.returncode == 1
    assert "steelyard: Every process of this run failed, so there is no result." in alone.stderr
    (run,) = data_folder.glob("runs/*/run.json")
    assert json.loads(run.read_text())["state"] == "failed"
    assert all(each["passed"] for each in json.loads((run.parent / "certificates.json").read_text()).values())
    beside = steelyard("run", *settings, "-f", "fake", "--knob", "fake.fault=none,timed", "--json")
    assert beside.returncode == 0
    found = json.loads(beside.stdout)
    right, wrong = contender(found, "fault=none"), contender(found, "fault=timed")
    assert right["certificate_of_processes"] == "The first losses of all 2 processes are the certified ones."
    assert (right["failure"], wrong["speeds"], wrong["certificate_of_processes"]) == ("", {}, "")
    assert "The loss of training step 1 is" in wrong["failure"]
    (sentence,) = found["comparisons"][0]["sentences"].values()
    assert "A verdict needs two such results." in sentence


def test_a_fault_does_not_stop_other_frameworks(faulty: Finished) -> None:
    assert contender(faulty.result, "dummy/scripted")["speeds"]["cached"]["processes"] == 2


def test_resume_runs_failed_cases_again_and_no_others(
    faulty: Finished, steelyard: Steelyard, data_folder: Path
) -> None:
    shutil.copytree(faulty.data_folder, data_folder)
    run = data_folder / "runs" / faulty.folder.name
    path = run / "run.json"
    record = json.loads(path.read_text())
    (group,) = record["plan"]["groups"]
    repeated = ("none", "nan", "memory")  # a worker that hangs would hang again
    group["variants"] = [v for v in group["variants"] if v["case"]["settings"]["knobs"].get("fault") in repeated]
    path.write_text(json.dumps(record))
    before = {each.name for each in run.glob("trials/*")}
    done = finished(data_folder, steelyard("run", "--resume", "latest", "--plain", "--json"))
    added = {each.name for each in run.glob("trials/*")} - before
    assert len(added) == 2
    assert all(name.startswith("r01.1-line_small_fake") for name in added)
    assert contender(done.result, "dummy/scripted")["speeds"]["cached"]["processes"] == 2


def test_an_interpreter_that_is_removed_during_a_run_is_named(
    steelyard: Steelyard, data_folder: Path, tmp_path: Path, cache: Path
) -> None:
    python = tmp_path / "env" / "bin" / "python"
    _interpreter_that_removes_itself(python)
    env = {
        "STEELYARD_RUNS": str(data_folder),
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
    errors = [trials.read(folder).error for folder in data_folder.glob("runs/*/trials/*")]
    assert [error[0] for error in errors if error] == ["crash", "crash"]
    again = finished(data_folder, steelyard("run", "--resume", "latest", "--plain", "--json"))
    assert {each["speeds"]["cached"]["processes"] for each in again.result["comparisons"][0]["contenders"]} == {2}


def _interpreter_that_removes_itself(python: Path) -> None:
    """Create a virtual environment whose link to the interpreter is removed as soon as the orchestrator has started."""
    python.parent.mkdir(parents=True)
    python.symlink_to(Path(sys.executable).resolve())
    (python.parent.parent / "pyvenv.cfg").write_text(f"home = {Path(sys.executable).resolve().parent}\n")
    packages = python.parent.parent / "lib" / f"python{sys.version_info[0]}.{sys.version_info[1]}" / "site-packages"
    packages.mkdir(parents=True)
    own = next(path for path in sys.path if path.endswith("site-packages"))
    (packages / "own.pth").write_text(
        f"{own}\nimport os; os.path.lexists({str(python)!r}) and os.unlink({str(python)!r})\n"
    )


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


def _garbage(path: Path) -> None:
    path.write_bytes(b"this is no database" * 500)


def _truncated(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def _older(path: Path) -> None:
    with sqlite3.connect(path) as base:
        base.execute("PRAGMA user_version = 77")
    base.close()


def _locked(path: Path) -> sqlite3.Connection:
    base = sqlite3.connect(path, isolation_level=None)
    base.execute("BEGIN EXCLUSIVE")
    return base


@pytest.mark.parametrize("damage", [_garbage, _truncated, _older, _locked])
def test_a_report_does_not_depend_on_the_index(
    damage: Callable[[Path], Any], copied: Finished, cli: CommandLine
) -> None:
    holder = damage(copied.folder.parent / "index.sqlite")
    code, out, err = cli("report", "--json")
    assert (code, err) == (0, "")
    assert json.loads(out)["comparisons"] == copied.result["comparisons"]
    if holder:
        holder.close()


def test_a_corrupted_index_is_rebuilt_by_the_next_run(copied: Finished, steelyard: Steelyard) -> None:
    _garbage(copied.folder.parent / "index.sqlite")
    done = steelyard("run", "--resume", "latest", "--plain", "--json")
    assert done.returncode == 0
    assert "It was rebuilt from the event files; no data were lost." in done.stderr
    assert json.loads(done.stdout)["comparisons"] == copied.result["comparisons"]


@pytest.mark.parametrize("name", ["events.jsonl", "job.json", "samples.i64"])
def test_a_damaged_trial_is_a_warning_and_the_others_are_used(name: str, copied: Finished, cli: CommandLine) -> None:
    damaged = min(copied.folder.glob("trials/*fake*"))
    content = (damaged / name).read_bytes()
    (damaged / name).write_bytes(
        content[:-80] if name == "samples.i64" else content[:300] + b"\x00{{no\n" + content[300:]
    )
    code, out, err = cli("report", "--json")
    assert (code, err) == (0, "")
    result = json.loads(out)
    (warning,) = [each for each in result["warnings"] if each["name"] == "DamagedFile"]
    assert name in warning["sentence"]
    assert f", delete {damaged}." in warning["sentence"]
    assert contender(result, "fake/scripted")["speeds"]["cached"]["processes"] == 2
    assert contender(result, "dummy/scripted,step_us=12000")["speeds"]["cached"]["processes"] == 3
    # Terms such as "trial" are buttons on the page.
    page = re.sub(r"<[^>]+>", "", (copied.folder / "report.html").read_text())
    assert f"{damaged.name}/{name}" in page or f"Trial {damaged.name} cannot be read" in page


def test_a_run_with_damaged_files_is_continued_and_measures_again_what_is_missing(
    copied: Finished, steelyard: Steelyard
) -> None:
    damaged = min(copied.folder.glob("trials/*fake*"))
    (damaged / "events.jsonl").write_text("garbage\n")
    rounds = copied.folder / "rounds.jsonl"
    first, *others = rounds.read_text().splitlines()
    rounds.write_text("\n".join([first, '{"group": 3}', "garbage", *others]) + "\n")
    (copied.folder / "certificates.json").write_text("[]")
    done = steelyard("run", "--resume", "latest", "--plain", "--json")
    assert done.returncode == 0
    for sentence in (f"Trial {damaged.name} cannot be read", "line 2, is damaged", "line 3, is damaged"):
        assert sentence in done.stderr
    added = {path.name for path in copied.folder.glob("trials/*")} - {
        path.name for path in Path(copied.result["folder"]).glob("trials/*")
    }
    assert added == {damaged.name.replace("r01.0", "r01.1")}
    again = contender(json.loads(done.stdout), "fake/scripted")
    assert again["speeds"]["cached"]["processes"] == 3
    assert again["certificate"] == "certified"


def test_runs_are_removed_by_their_names(copied: Finished, cli: CommandLine) -> None:
    other = copied.folder.with_name("20200101-000000-first-look")
    shutil.copytree(copied.folder, other)
    assert json.loads(cli("runs", "list", "--json")[1]) == json.loads(cli("list", "runs", "--json")[1])
    assert "Did you mean '20200101-000000-first-look'?" in cli.error("runs", "remove", "20200101-000000-first")
    assert "Name the runs to remove." in cli.error("runs", "remove")
    assert "takes no name" in cli.error("runs", "list", "x")
    code, out, _ = cli("runs", "remove", other.name)
    assert code == 0
    assert out.startswith(f"Removed {other.name} (")
    assert [row["run"] for row in json.loads(cli("runs", "list", "--json")[1])] == [copied.folder.name]
    cli("runs", "remove", copied.folder.name)
    assert cli("runs", "list")[1] == "There are no runs yet. Start with: steelyard run\n"


def test_the_cache_is_listed_and_pruned(
    copied: Finished, cli: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = tmp_path / "own-cache"
    unused = own / "weights" / ("0" * 20)
    unused.mkdir(parents=True)
    (unused / "tensors.bin").write_bytes(b"x" * 2**20)
    monkeypatch.setenv("STEELYARD_CACHE", str(own))
    listed = {row["kind"]: row for row in json.loads(cli("cache", "--json")[1])}
    assert (listed["inputs"]["size_bytes"], listed["inputs"]["unused_bytes"]) == (2**20, 2**20)
    assert "1.0 MiB" in cli("cache")[1]
    assert cli("cache", "prune")[1] == "Removed 1 of inputs (1.0 MiB).\nFreed 1.0 MiB.\n"
    assert cli("cache", "prune")[1] == "Freed 0.0 MiB.\n"


@pytest.mark.parametrize(
    ("text", "state", "message"),
    [
        ('{"format": 1, "pl', "damaged", "is damaged"),
        ('{"format": 3, "plan": {}}', "damaged", "is damaged"),
        ('{"format": 1, "plan": {"options": {}}}', "older format", "has the older format 1"),
        ('{"format": 4}', "newer format", "has the newer format 4"),
    ],
)
def test_a_damaged_run_or_one_of_another_format_is_listed_with_its_state_and_the_others_can_be_used(
    text: str, state: str, message: str, copied: Finished, cli: CommandLine
) -> None:
    other = copied.folder.with_name("20200101-000000-first-look")
    shutil.copytree(copied.folder, other)
    (copied.folder / "run.json").write_text(text)
    states = {row["run"]: row["state"] for row in json.loads(cli("list", "runs", "--json")[1])}
    assert states == {copied.folder.name: state, other.name: "complete"}
    assert f"{copied.folder / 'run.json'} {message}" in cli.error("report", copied.folder.name)
    (copied.folder.parent / "index.sqlite").unlink()
    assert cli("report", other.name)[0] == 0
