"""Run folders: how they are named and found, when one is in use, and what the user reads when something is wrong."""

from __future__ import annotations

import errno
import json
import os
import re
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import recorded_trials

import steelyard
from steelyard.errors import ResumableError, UserError
from steelyard.files import atomic, paths
from steelyard.plan import resolve
from steelyard.plan.options import Options
from steelyard.results import record, run_folders

WORKLOADS = Path(__file__).parents[1] / "workloads"
PLAN = resolve.plan(Options(workloads=("line",), frameworks=("fake", "dummy"), workload_folders=(str(WORKLOADS),)))


def new_run(folder: Path, state: str = "running") -> Path:
    """Write a run folder and return it."""
    folder.mkdir(parents=True)
    record.write(folder, record.RunRecord(PLAN, "2026-01-01", state, "steelyard run"))
    return folder


def test_a_new_record_has_the_time_the_command_and_the_version() -> None:
    found = record.new(PLAN, "steelyard run -w line", "0123")
    assert (found.plan, found.command, found.worker_hash, found.state) == (
        PLAN,
        "steelyard run -w line",
        "0123",
        "running",
    )
    assert (found.steelyard, found.study) == (steelyard.__version__, PLAN.study.name)
    created = datetime.fromisoformat(found.created)
    assert created.tzinfo is not None
    assert created.microsecond == 0
    assert abs(datetime.now().astimezone() - created) < timedelta(minutes=5)


def test_the_plan_that_can_run_lacks_the_frameworks_without_an_environment() -> None:
    found = record.RunRecord(PLAN, "2026-01-01", "running", "", unavailable={"dummy": "No such package."})
    assert [case.framework for case in found.available.groups[0].cases] == ["fake"]
    assert found.available.skipped[-1].reason == "No such package."


def test_a_run_json_that_cannot_be_written_is_an_error_that_says_whether_the_run_can_be_continued(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started, none = record.RunRecord(PLAN, "2026-01-01", "running", ""), tmp_path / "20260101-000000-first-look"
    with pytest.raises(
        UserError, match=r"run\.json cannot be written \(No such file.*\)\. .*give the command again\.$"
    ) as new:
        record.write(none, started)
    assert not isinstance(new.value, ResumableError)
    none.mkdir()
    record.write(none, started)

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(atomic, "write_text", full)
    with pytest.raises(
        ResumableError, match=r"run\.json cannot be written \(No space left on device\)\. .*--resume 20260101-"
    ):
        record.write(none, started)


def test_the_names_of_new_folders_have_the_time_and_the_study_and_never_repeat(tmp_path: Path) -> None:
    made = [run_folders.new_folder(tmp_path / "runs", "first-look") for _ in range(4)]
    assert len(set(made)) == 4
    for folder in made:
        assert folder.is_dir()
        stamp = re.fullmatch(r"(\d{8}-\d{6})-first-look(-\d+)?", folder.name)
        assert stamp
        started = datetime.strptime(stamp[1], "%Y%m%d-%H%M%S").astimezone()
        assert abs(datetime.now().astimezone() - started) < timedelta(minutes=5)


class _OneSecond(datetime):
    """A clock that stands still."""

    @classmethod
    def now(cls, tz: object = None) -> _OneSecond:
        return cls(2026, 1, 2, 3, 4, 5)


def test_runs_of_the_same_second_are_numbered_from_two_to_ninety_nine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_folders, "datetime", _OneSecond)
    names = [run_folders.new_folder(tmp_path, "cpu").name for _ in range(99)]
    assert names[0] == "20260102-030405-cpu"
    assert names[1:] == [f"20260102-030405-cpu-{number}" for number in range(2, 100)]
    with pytest.raises(UserError, match="already holds 99 runs"):
        run_folders.new_folder(tmp_path, "cpu")


def test_a_runs_folder_that_cannot_be_created_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match=r"cannot be created \(Not a directory\)\. Choose another folder with --runs"):
        run_folders.new_folder(tmp_path / "file", "cpu")


def test_a_run_is_found_by_its_name_a_unique_prefix_its_path_or_as_the_latest(tmp_path: Path) -> None:
    first, second = (new_run(tmp_path / name) for name in ("20260101-000000-cpu", "20260102-000000-cpu"))
    longer = new_run(tmp_path / "20260102-000000-cpu-2")
    assert run_folders.find(tmp_path, first.name) == first
    assert run_folders.find(tmp_path, "20260101") == first
    assert run_folders.find(tmp_path, second.name) == second, "a complete name is not a prefix"
    assert run_folders.find(tmp_path, "latest") == longer
    assert run_folders.find(tmp_path / "elsewhere", str(first)) == first


def test_a_run_is_found_by_a_relative_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = new_run(tmp_path / "here" / "20260101-000000-cpu")
    monkeypatch.chdir(tmp_path)
    assert run_folders.find(tmp_path / "elsewhere", f"here/{run.name}") == run


def finish(run: Path, ending: str = "done") -> Path:
    """Give a run a process that ended so."""
    folder = run / "trials" / "r01.0-fake"
    recorded_trials.write(folder, recorded_trials.job(folder), recorded_trials.events(ending=ending))
    return run


def test_the_latest_run_is_the_last_one_with_a_finished_process(tmp_path: Path) -> None:
    runs = [new_run(tmp_path / f"2026010{day}-000000-cpu") for day in (1, 2, 3, 4)]
    assert run_folders.find(tmp_path, "latest") == runs[3], "without any such run it is the last one"
    finish(runs[0])
    finish(runs[1])
    finish(runs[2], "error")
    (runs[3] / "trials" / "r01.0-fake").mkdir(parents=True)
    (runs[3] / "trials" / "r01.0-fake" / "events.jsonl").write_bytes(b"\xff garbage\n")
    assert run_folders.find(tmp_path, "latest") == runs[1]


@pytest.mark.parametrize("name", ["x" * 300, "x/" * 3000, "\0", "../" * 9])
def test_a_name_that_no_file_can_have_is_not_found(name: str, tmp_path: Path) -> None:
    new_run(tmp_path / "20260101-000000-cpu")
    with pytest.raises(UserError, match="There is no run '"):
        run_folders.find(tmp_path, name)


def test_a_run_and_a_new_folder_of_runs_are_the_users_alone(tmp_path: Path) -> None:
    run = run_folders.new_folder(tmp_path / "runs", "cpu")
    assert run.stat().st_mode & 0o777 == run.parent.stat().st_mode & 0o777 == 0o700


def test_a_folder_of_runs_that_the_user_has_chosen_keeps_its_permissions(tmp_path: Path) -> None:
    (tmp_path / "runs").mkdir(mode=0o755)
    run = run_folders.new_folder(tmp_path / "runs", "cpu")
    assert (run.stat().st_mode & 0o777, run.parent.stat().st_mode & 0o777) == (0o700, 0o755)


def test_the_default_folders_are_made_private(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("STEELYARD_RUNS", raising=False)
    monkeypatch.delenv("STEELYARD_CACHE", raising=False)
    for folder in (paths.runs_folder(), paths.cache_folder()):
        folder.mkdir(0o755, parents=True)
        paths.make_private(folder)
        assert folder.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"created": "yesterday"}, "Invalid isoformat string"),
        ({"host": {"memory_bytes": "much"}}, r"run\.host\.memory_bytes must be a whole number"),
        ({"host": {"gpus": [3]}}, r"run\.host\.gpus\[0\] must be a string"),
        ({"environments": {"fake": {"version": "1"}}}, r"run\.environments\.fake lacks the field 'external'"),
        ({"environments": {"fake": []}}, r"run\.environments\.fake must be an object"),
        ({"inputs": {"line:small": {"origin": "x"}}}, r"run\.inputs\.line:small lacks the field 'identity'"),
        ({"peak": {"float32": {"numpy": float("nan")}}}, r"run\.peak\.float32\.numpy must be a finite number"),
        ({"method": 10**30}, r"run\.method must be at most"),
        ({"plan": {"options": {"delta": -0.02}}}, "This plan cannot decide anything"),
        ({"plan": {"frameworks": {}}}, "the plan does not describe fake or line, which line:small/fake/scripted needs"),
        ({"plan": {"workload_folders": {}}}, "the plan does not describe fake or line"),
    ],
)
def test_a_value_that_makes_no_sense_is_named(change: dict[str, Any], named: str, tmp_path: Path) -> None:
    run = new_run(tmp_path / "run")
    raw = json.loads((run / "run.json").read_text())
    for key, value in change.items():
        inner = (
            {} if key != "plan" else {name: {**raw[key][name], **each} if each else {} for name, each in value.items()}
        )
        raw[key] = {**raw[key], **inner} if key == "plan" else value
    (run / "run.json").write_text(json.dumps(raw))
    with pytest.raises(record.UnreadableRun, match=rf"run\.json is damaged \(.*{named}"):
        record.read(run)


def test_a_protocol_of_impossibly_many_rounds_is_damaged(tmp_path: Path) -> None:
    run = new_run(tmp_path / "run")
    raw = json.loads((run / "run.json").read_text())
    raw["plan"]["groups"][0]["protocol"]["rounds_max"] = 10**12
    (run / "run.json").write_text(json.dumps(raw))
    with pytest.raises(
        record.UnreadableRun, match=r"the protocol of line:small allows from \d to 1000000000000 rounds"
    ):
        record.read(run)


@pytest.mark.parametrize("batch", [0, -1, "many", None, 1.5, 10**30])
def test_a_case_without_a_possible_batch_is_damaged(batch: Any, tmp_path: Path) -> None:
    run = new_run(tmp_path / "run")
    raw = json.loads((run / "run.json").read_text())
    raw["plan"]["groups"][0]["variants"][0]["case"]["sizes"]["batch"] = batch
    (run / "run.json").write_text(json.dumps(raw))
    with pytest.raises(record.UnreadableRun, match="the batch of line:small/fake/scripted must be"):
        record.read(run)


def test_a_run_that_is_not_found_is_explained(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=rf"There is no run in {tmp_path} yet\. Start one"):
        run_folders.find(tmp_path, "latest")
    for day in range(1, 8):
        new_run(tmp_path / f"2026010{day}-000000-cpu")
    (tmp_path / "20260301-000000-cpu").mkdir()  # without run.json it is no run
    listed = ", ".join(rf"2026010{day}-000000-cpu" for day in range(1, 6))
    with pytest.raises(UserError, match=rf"'202601' matches 7 runs: {listed}\. Give more of the name"):
        run_folders.find(tmp_path, "202601")
    with pytest.raises(UserError, match=r"no run '20260108-000000-cpu' in .*Did you mean '2026010\d-000000-cpu'\?"):
        run_folders.find(tmp_path, "20260108-000000-cpu")


def test_a_run_that_was_killed_is_interrupted_and_one_in_use_is_running(tmp_path: Path) -> None:
    run = new_run(tmp_path / "run")
    assert run_folders.state(run, record.read(run)) == "interrupted"
    with run_folders.claim(run):
        assert run_folders.state(run, record.read(run)) == "running"
    assert run_folders.state(run, record.read(run)) == "interrupted"
    done = new_run(tmp_path / "done", state="complete")
    assert run_folders.state(done, record.read(done)) == "complete"


def test_a_run_in_use_cannot_be_claimed_again_until_it_is_released(tmp_path: Path) -> None:
    run = new_run(tmp_path / "20260101-000000-cpu")
    with (
        run_folders.claim(run),
        pytest.raises(UserError, match="Run 20260101-000000-cpu is in use"),
        run_folders.claim(run),
    ):
        pass
    with pytest.raises(ZeroDivisionError), run_folders.claim(run):
        raise ZeroDivisionError
    with run_folders.claim(run):
        pass


def test_a_run_json_is_written_in_readable_lines(tmp_path: Path) -> None:
    run = new_run(tmp_path / "run")
    text = (run / "run.json").read_text(encoding="utf-8")
    assert len(text.splitlines()) > 20
    assert json.loads(text)["format"] == record.FORMAT


def test_a_damaged_run_json_is_named_with_the_reason(tmp_path: Path) -> None:
    run = new_run(tmp_path / "run")
    (run / "run.json").write_text("[]")
    with pytest.raises(record.UnreadableRun, match=r"run\.json is damaged \(it is not the record of a run\)"):
        record.read(run)
    (run / "run.json").write_text("{")
    with pytest.raises(record.UnreadableRun, match=r"run\.json is damaged \(Expecting property name"):
        record.read(run)
