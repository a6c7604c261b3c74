"""Real faults of processes: each gives one message and one recorded event, loses no sample, and does not stop the others."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
from finished_runs import LINE, Finished, contender, finished

from steelyard.results import trials

if TYPE_CHECKING:
    from finished_runs import Steelyard

pytestmark = pytest.mark.end_to_end
ENDS = "At the end of all 2 processes, the first certified steps, computed once more, are the certified ones."
# fault -> (kind of the recorded event, part of the message)
FAULTS = {
    "die": ("killed", "The worker was killed (signal 9)"),
    "hang": ("hung", "The worker wrote no event for 2 s and was stopped."),
    "nan": ("nan-loss", "The loss of training step 20 is nan."),
    "memory": ("out-of-memory", "Unable to allocate 1.00 PiB"),
    "import": ("crash", "No module named 'fake'"),
    "unsupported": ("unsupported", "The script says that this cannot be done."),
    "precision": (
        "setting",
        "matmul_precision was 'highest' and is 'medium' at the end: the implementation of line changed it.",
    ),
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
    settings = (*LINE, "--rounds", "2", "--protocol", "fixed:3+150", "--plain")
    alone = steelyard("run", *settings, "-f", "fake", "--knob", "fake.fault=timed")
    assert alone.returncode == 1
    assert "steelyard: Every process of this run failed, so there is no result." in alone.stderr
    (run,) = data_folder.glob("runs/*/run.json")
    assert json.loads(run.read_text())["state"] == "failed"
    assert all(each["passed"] for each in json.loads((run.parent / "certificates.json").read_text()).values())
    beside = steelyard("run", *settings, "-f", "fake", "--knob", "fake.fault=none,timed", "--json")
    assert beside.returncode == 3
    assert "steelyard: 1 contender is in no verdict" in beside.stderr
    found = json.loads(beside.stdout)
    right, wrong = contender(found, "fault=none"), contender(found, "fault=timed")
    assert right["certificate_of_processes"] == f"The first losses of all 2 processes are the certified ones. {ENDS}"
    assert (right["failure"], wrong["speeds"], wrong["certificate_of_processes"]) == ("", {}, "")
    assert "The loss of training step 1 is" in wrong["failure"]
    (sentence,) = found["comparisons"][0]["sentences"].values()
    assert "A verdict needs two such results." in sentence


def test_a_process_that_leaves_what_was_certified_later_on_is_left_out(steelyard: Steelyard) -> None:
    """Its certificate and its first losses are right: the fault begins at step 8."""
    knobs = ("--knob", "fake.fault=none,frozen,coarse", "--knob", "fake.fault_step=8")
    done = steelyard("run", *LINE, "--rounds", "2", "--protocol", "fixed:3+150", "-f", "fake", *knobs, "--json")
    found = json.loads(done.stdout)
    assert contender(found, "fault=none,fault_step=8")["certificate_of_processes"].endswith(ENDS)
    for fault in ("frozen", "coarse"):
        wrong = contender(found, f"fault={fault},fault_step=8")
        assert (wrong["certificate"], wrong["speeds"]) == ("certified", {})
        assert "At the end of the process, the loss of certified step " in wrong["failure"]
        assert "The process did not compute to its end what was certified." in wrong["failure"]


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
    """Create a virtual environment whose link to the interpreter is removed when the process that describes the network has started."""
    python.parent.mkdir(parents=True)
    python.symlink_to(Path(sys.executable).resolve())
    (python.parent.parent / "pyvenv.cfg").write_text(f"home = {Path(sys.executable).resolve().parent}\n")
    packages = python.parent.parent / "lib" / f"python{sys.version_info[0]}.{sys.version_info[1]}" / "site-packages"
    packages.mkdir(parents=True)
    own = next(path for path in sys.path if path.endswith("site-packages"))
    (packages / "own.pth").write_text(
        f"{own}\nimport os, sys; '-c' in sys.orig_argv and os.path.lexists({str(python)!r}) and os.unlink({str(python)!r})\n"
    )
