"""Every way in which a worker can end gives a Trial and a recorded event, and leaves no process running."""

from __future__ import annotations

import hashlib
import json
import os
import re
import stat
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
import recorded_trials

from steelyard.catalog import frameworks
from steelyard.measure import launch
from steelyard.results import trials
from steelyard_worker import protocol

PYTHON = Path(sys.executable)
Watch = Callable[[dict[str, Any]], None]


@dataclass
class Clock:
    """Stands for `time` in the launcher: real time, to which tests add instead of waiting.

    While the file `hurry` exists, which a worker makes when it has written everything, 20 s are added at every look.
    """

    hurry: Path
    added_s: float = 0.0

    def monotonic(self) -> float:
        self.added_s += 20 * self.hurry.exists()
        return time.monotonic() + self.added_s

    def __getattr__(self, name: str) -> Any:
        return getattr(time, name)


@dataclass
class Stage:
    """A worker that consists of one script, and the folder of its trial."""

    root: Path
    clock: Clock
    heard: list[dict[str, Any]] = field(default_factory=list)

    def play(
        self, script: str, python: Path = PYTHON, silence_s: float = 30.0, watch: Watch | None = None, memory_limit: int = 0,
    ) -> trials.Trial:  # fmt: skip
        """Launch the script as the worker; it finds the job in `job` and may call `say(event, **values)`."""
        worker = self.root / "worker"
        worker.mkdir(exist_ok=True)
        (worker / "__main__.py").write_text(OPENING + script)
        job = recorded_trials.job(self.folder, variables={"OF_THE_JOB": "set"})
        job = replace(job, case=replace(job.case, memory_limit=memory_limit))
        return launch.launch(job, python, watch or self.heard.append, launch.Guard(silence_s), worker)

    @property
    def folder(self) -> Path:
        """The trial's folder."""
        return self.root / "trials" / "r01.0-fake"

    def last_event(self) -> dict[str, Any]:
        """Return the last event in the file."""
        event: dict[str, Any] = json.loads((self.folder / protocol.EVENTS).read_text().splitlines()[-1])
        return event


OPENING = """
import json, os, signal, sys, time
job = json.loads(sys.stdin.readline() or "{}")
events = open("events.jsonl", "a")
def say(event, **values):
    events.write(json.dumps({"v": 2, "event": event, "t_ns": 0, **values}) + "\\n")
    events.flush()
def block(first, steps):
    say("samples", input="cached", phase="counted", steps=steps, start_ns=0, elapsed_ns=steps, first_step=first)
say("hello", method=1, pid=os.getpid())
"""

# Hangs, and the launcher's clock runs fast from then on.
HANG = "open('hurry', 'w').close(); time.sleep(600)"

# A line that the worker could not finish.
TORN = """events.write('{"v": 2, "ev'); events.flush()"""


@pytest.fixture
def stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Stage:
    """An empty stage."""
    found = Stage(tmp_path, Clock(tmp_path / "trials" / "r01.0-fake" / "hurry"))
    monkeypatch.setattr(launch, "time", found.clock)
    return found


def test_a_worker_that_writes_done_is_done(stage: Stage) -> None:
    trial = stage.play("block(0, 5); say('done')")
    assert (trial.done, trial.error) == (True, None)
    assert [event["event"] for event in stage.heard] == ["hello", "samples", "done"]


def test_the_worker_gets_the_job_that_is_stored(stage: Stage) -> None:
    stage.play("json.dump(job, open('heard.json', 'w')); say('done')")
    heard = json.loads((stage.folder / "heard.json").read_text())
    assert heard == json.loads((stage.folder / "job.json").read_text())
    assert heard["spawned_ns"] > 0
    assert heard["worker_hash"] == launch.worker_hash(stage.root / "worker")


@pytest.mark.parametrize(
    ("script", "kind", "message"),
    [
        ("os.kill(os.getpid(), signal.SIGKILL)", "killed", "signal 9"),
        ("print('torn'); os.kill(os.getpid(), signal.SIGTERM)", "killed", "was ended by SIGTERM"),
        ("sys.exit(3)", "crash", "exit code 3: there was no output"),
        ("sys.exit('no such kernel')", "crash", "exit code 1: no such kernel"),
        ("raise RuntimeError('broken kernel')", "crash", "RuntimeError: broken kernel"),
        ("sys.exit(0)", "crash", "exit code 0"),
        ("sys.exit(5)", "disk-full", "is full. Free some space"),
        (HANG, "hung", "wrote no event for 30 s"),
        ("say('error', kind='out-of-memory', message='No room.'); sys.exit(4)", "out-of-memory", "No room."),
    ],
)  # fmt: skip
def test_every_failure_is_recorded_with_its_kind_and_loses_no_block(
    script: str, kind: str, message: str, stage: Stage
) -> None:
    torn = "" if "say" in script else TORN
    trial = stage.play(f"block(0, 5)\n{torn}\n{script}")
    assert trial.error is not None
    assert trial.error[0] == kind
    assert message in trial.error[1]
    assert not trial.done
    again = trials.read(stage.folder)
    assert again.error == trial.error
    assert [block.steps for block in again.blocks] == [5]
    assert stage.last_event()["event"] == "error"


def test_a_worker_that_writes_events_is_not_stopped(stage: Stage) -> None:
    """Six times 20 s pass, each after an event, where 30 s are allowed; the worker ends when the launcher has read the last one."""

    def watch(event: dict[str, Any]) -> None:
        stage.heard.append(event)
        stage.clock.added_s += 20
        if event.get("first_step") == 5:
            (stage.folder / "last").touch()

    script = "for n in range(6):\n    block(n, 1)\nwhile not os.path.exists('last'):\n    time.sleep(0.01)\nsay('done')"
    assert stage.play(script, watch=watch).done


def test_a_worker_without_events_is_stopped_soon_after_the_time_allowed(stage: Stage) -> None:
    began = time.monotonic()
    trial = stage.play("time.sleep(600)", silence_s=0.5)
    assert trial.error is not None
    assert trial.error[0] == "hung"
    assert 0.5 < time.monotonic() - began < 60


def test_loader_processes_end_with_their_worker(stage: Stage) -> None:
    fork = "pid = os.fork()\nif pid == 0:\n    time.sleep(60)\n"
    stage.play(fork + "say('phase', name='loader', elapsed_ns=pid)\nos.kill(os.getpid(), signal.SIGKILL)")
    pid = next(event["elapsed_ns"] for event in stage.heard if event["event"] == "phase")
    limit = time.monotonic() + 60
    while _alive(pid):
        assert time.monotonic() < limit
        time.sleep(0.02)


def _alive(pid: int) -> bool:
    path = Path(f"/proc/{pid}/stat")
    try:
        return path.read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.skipif(sys.platform != "linux", reason="the failing interpreter is a /bin/sh script")
def test_a_worker_that_ends_before_it_reads_its_job_is_recorded(stage: Stage) -> None:
    python = stage.root / "python"
    python.write_text("#!/bin/sh\nexec 0<&-\necho 'no such library' >&2\nexit 127\n")
    python.chmod(python.stat().st_mode | stat.S_IXUSR)
    for _ in range(5):
        trial = stage.play("", python)
        assert trial.error == ("crash", "The worker ended with exit code 127: no such library")


def test_an_interpreter_that_is_missing_or_cannot_be_executed_is_named(stage: Stage) -> None:
    missing = stage.root / "gone" / "python"
    trial = stage.play("", missing)
    assert trial.error is not None
    assert trial.error[0] == "crash"
    assert f"The interpreter {missing} could not be started (No such file or directory)" in trial.error[1]
    assert trials.read(stage.folder).error == trial.error
    (stage.root / "text").write_bytes(b"\x00\x01")
    (stage.root / "text").chmod(0o755)
    trial = stage.play("", stage.root / "text")
    assert trial.error is not None
    assert "could not be started (Exec format error)" in trial.error[1]


def test_the_folder_of_an_interrupted_process_is_renamed_and_not_mixed_with_the_next(stage: Stage) -> None:
    stage.play("block(0, 7); open('samples.i64', 'ab').write(b'0' * 56); " + HANG)
    trial = stage.play("block(0, 5); open('samples.i64', 'ab').write(b'0' * 40); say('done')")
    assert [block.steps for block in trial.blocks] == [5]
    assert (stage.folder / "samples.i64").stat().st_size == 40
    aside = trials.read(stage.folder.with_name("r01.0-fake.earlier1"))
    assert [block.steps for block in aside.blocks] == [7]


def test_later_events_are_forwarded_after_a_damaged_line(stage: Stage) -> None:
    trial = stage.play("events.write('garbage\\n[1]\\n3\\n{\"a\": 1}\\n'); block(0, 5); say('done')")
    assert trial.error is not None and not trial.done
    assert trial.error[0] == "crash"
    assert "cannot be read" in trial.error[1] and "line 2: not an event" in trial.error[1]
    assert [event["event"] for event in stage.heard] == ["hello", "samples", "done"]


def test_an_interrupt_ends_the_running_worker(stage: Stage) -> None:
    def interrupted(event: dict[str, Any]) -> None:
        stage.heard.append(event)
        raise KeyboardInterrupt

    worker = stage.root / "worker"
    worker.mkdir()
    (worker / "__main__.py").write_text(OPENING + "time.sleep(60)")
    with pytest.raises(KeyboardInterrupt):
        launch.launch(recorded_trials.job(stage.folder), PYTHON, interrupted, launch.Guard(), worker)
    assert not _alive(stage.heard[0]["pid"])


def test_the_worker_hash_depends_on_every_source_file_and_on_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("1")
    (tmp_path / "b.toml").write_text("x = 1")
    first = launch.worker_hash(tmp_path)
    (tmp_path / "__pycache__").mkdir()
    (tmp_path / "__pycache__" / "a.pyc").write_bytes(b"0")
    assert launch.worker_hash(tmp_path) == first
    (tmp_path / "b.toml").write_text("x = 2")
    assert launch.worker_hash(tmp_path) != first
    os.rename(tmp_path / "a.py", tmp_path / "c.py")  # noqa: PTH104
    (tmp_path / "b.toml").write_text("x = 1")
    assert launch.worker_hash(tmp_path) != first


def test_stopping_the_run_ends_the_worker(stage: Stage) -> None:
    worker = stage.root / "worker"
    worker.mkdir()
    (worker / "__main__.py").write_text(OPENING + "time.sleep(60)")
    guard = launch.Guard(60, lambda: bool(stage.heard))
    trial = launch.launch(recorded_trials.job(stage.folder), PYTHON, stage.heard.append, guard, worker)
    assert trial.error == ("killed", "The worker was stopped with the run.")
    assert not _alive(stage.heard[0]["pid"])


def test_a_workers_hash_includes_the_adapter_of_the_users_own(tmp_path: Path) -> None:
    worker, own, other = (tmp_path / name for name in ("worker", "own", "other"))
    for folder, text in ((worker, "1"), (own, "2"), (other, "3")):
        folder.mkdir()
        (folder / "adapter.py").write_text(text)
    without = launch.worker_hash(worker)
    hashes = {without, launch.worker_hash(worker, str(own)), launch.worker_hash(worker, str(other))}
    assert len(hashes) == 3
    assert all(re.fullmatch("[0-9a-f]{16}", each) for each in hashes)
    text = b"adapter.py\0" + (worker / "adapter.py").read_bytes()
    assert without == hashlib.sha256(text).hexdigest()[:16]


def test_the_job_names_the_adapter_of_a_framework_of_the_users_own(stage: Stage) -> None:
    folder = stage.root / "frameworks" / "mine"
    folder.mkdir(parents=True)
    (folder / "framework.toml").write_text((frameworks.BUILT_IN / "fake" / "framework.toml").read_text())
    frameworks.use((str(folder.parent),))
    try:
        worker = stage.root / "worker"
        worker.mkdir()
        (worker / "__main__.py").write_text(OPENING + "say('done')")
        job = recorded_trials.job(stage.folder, framework="mine")
        trial = launch.launch(job, PYTHON, stage.heard.append, launch.Guard(), worker)
        assert trial.job.adapter_folder == str(folder)
        assert trial.job.worker_hash == launch.worker_hash(worker, str(folder)) != launch.worker_hash(worker)
    finally:
        frameworks.use(())
    assert stage.play("say('done')").job.adapter_folder == ""


def test_the_stored_job_can_be_read_by_people(stage: Stage) -> None:
    stage.play("say('done')")
    assert len((stage.folder / "job.json").read_text().splitlines()) > 20


def test_output_that_is_no_text_is_shown_as_far_as_possible(stage: Stage) -> None:
    trial = stage.play("sys.stdout.buffer.write(b'\\xff\\xfe broken\\n'); sys.stdout.flush(); sys.exit(1)")
    assert trial.error == ("crash", "The worker ended with exit code 1: \ufffd\ufffd broken")


def test_the_message_of_a_crash_is_the_last_line_and_not_endless(stage: Stage) -> None:
    trial = stage.play("print('first'); print('x' * 1000); print(); sys.exit(1)")
    assert trial.error == ("crash", f"The worker ended with exit code 1: {'x' * 400}")


def test_an_error_that_cannot_be_recorded_is_still_reported(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError("No space left on device")

    monkeypatch.setattr(launch.json_lines, "append", full)
    trial = stage.play("block(0, 5); sys.exit(5)")
    assert trial.error is not None
    assert trial.error[0] == "disk-full"
    assert str(stage.folder) in trial.error[1]
    assert [block.steps for block in trial.blocks] == [5]


def test_the_recorded_error_has_the_time_and_the_version_of_the_protocol(stage: Stage) -> None:
    before = time.perf_counter_ns()
    stage.play("sys.exit(3)")
    event = stage.last_event()
    assert event.keys() == {"v", "event", "t_ns", "kind", "message"}
    assert (event["v"], event["event"], event["kind"]) == (protocol.VERSION, "error", "crash")
    assert before < event["t_ns"] < time.perf_counter_ns()


def test_a_worker_runs_in_its_folder_without_the_users_python_settings(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", "/somewhere")
    script = "json.dump([os.getcwd(), sys.path, sys.flags.isolated, os.getpgid(0) == os.getpid()], open('heard', 'w'))"
    stage.play(f"{script}; say('done'); print('out'); print('err', file=sys.stderr)")
    folder, path, isolated, leads_its_group = json.loads((stage.folder / "heard").read_text())
    assert folder == str(stage.folder)
    assert "/somewhere" not in path
    assert (isolated, leads_its_group) == (1, True)
    assert sorted((stage.folder / "output.log").read_text().split()) == ["err", "out"]
    assert trials.read(stage.folder).job.spawned_ns > 0


def test_several_interrupted_processes_are_kept_apart(stage: Stage) -> None:
    for _ in range(3):
        stage.play("block(0, 7); say('done')")
    names = sorted(folder.name for folder in stage.folder.parent.iterdir())
    assert names == ["r01.0-fake", "r01.0-fake.earlier1", "r01.0-fake.earlier2"]


def test_a_folder_without_events_is_used(stage: Stage) -> None:
    stage.folder.mkdir(parents=True)
    (stage.folder / "note").write_text("")
    assert stage.play("say('done')").done
    assert (stage.folder / "note").exists()


def test_an_event_that_arrives_in_two_parts_is_forwarded_once_and_whole(stage: Stage) -> None:
    first, second = '{"v": 2, "event": "phase", "na', 'me": "loader", "elapsed_ns": 7, "t_ns": 0}\\n'
    script = f"""
events.write('{first}'); events.flush()
while not os.path.exists('seen'):
    time.sleep(0.01)
time.sleep(0.2)
events.write('{second}'); events.flush()
say('done')
"""

    def watch(event: dict[str, Any]) -> None:
        stage.heard.append(event)
        (stage.folder / "seen").touch()

    assert stage.play(script, watch=watch).phases_ns == {"loader": 7}
    assert [event["event"] for event in stage.heard] == ["hello", "phase", "done"]
    assert stage.heard[1]["name"] == "loader"


def test_a_worker_finds_the_programs_of_its_environment_first(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONSTARTUP", "/somewhere")
    monkeypatch.setenv("ONEDNN_DEFAULT_FPMATH_MODE", "BF16")
    monkeypatch.setenv("LC_TEST", "kept")
    stage.play("json.dump(dict(os.environ), open('heard', 'w')); say('done')")
    found = json.loads((stage.folder / "heard").read_text())
    assert found["PATH"].split(os.pathsep)[0] == str(PYTHON.parent)
    assert "PYTHONSTARTUP" not in found
    assert "ONEDNN_DEFAULT_FPMATH_MODE" not in found
    assert found["LC_TEST"] == "kept"
    assert found["OF_THE_JOB"] == "set"


def test_a_process_above_its_memory_limit_is_stopped(stage: Stage) -> None:
    trial = stage.play("block = bytes(b'x' * 300_000_000)\ntime.sleep(60)", memory_limit=200_000_000)
    kind, message = trial.error or ("", "")
    assert kind == "out-of-memory"
    assert re.fullmatch(
        r"The process used 0\.\d\d GB of memory, more than its limit of 0\.2 GB, and was stopped\.", message
    )
    assert stage.last_event()["kind"] == "out-of-memory"


def test_a_process_within_its_memory_limit_is_not_stopped(stage: Stage) -> None:
    assert stage.play("block = bytes(b'x' * 100_000_000)\ntime.sleep(0.3)\nsay('done')", memory_limit=200_000_000).done
