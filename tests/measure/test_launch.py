"""Every way in which a worker can end gives a Trial and a recorded event, and leaves no process running."""

from __future__ import annotations

import re
import stat
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import recorded_trials

from measure.staged_workers import HANG, OPENING, PYTHON, TORN, Stage
from steelyard.measure import launch
from steelyard.results import trials
from steelyard_worker import protocol


def test_a_worker_that_writes_done_is_done(stage: Stage) -> None:
    trial = stage.play("block(0, 5); say('done')")
    assert (trial.done, trial.error) == (True, None)
    assert [event["event"] for event in stage.heard] == ["hello", "samples", "done"]


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
)
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


def test_stopping_the_run_ends_the_worker(stage: Stage) -> None:
    worker = stage.root / "worker"
    worker.mkdir()
    (worker / "__main__.py").write_text(OPENING + "time.sleep(60)")
    guard = launch.Guard(60, lambda: bool(stage.heard))
    trial = launch.launch(recorded_trials.job(stage.folder), PYTHON, stage.heard.append, guard, worker)
    assert trial.error == ("killed", "The worker was stopped with the run.")
    assert not _alive(stage.heard[0]["pid"])
    assert trials.read(stage.folder).error is None, "it is no failure, so the page must not show one"


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


def test_a_process_above_its_memory_limit_is_stopped(stage: Stage) -> None:
    trial = stage.play("block = bytes(b'x' * 300_000_000)\ntime.sleep(60)", memory_limit=200_000_000)
    kind, message = trial.error or ("", "")
    assert kind == "out-of-memory"
    assert re.fullmatch(
        r"The process used 0\.\d\d GB of memory, more than its limit of 0\.2 GB, and was stopped\.", message
    )
    assert stage.last_event()["kind"] == "out-of-memory"


BESIDE = """
import subprocess
beside = subprocess.Popen([sys.executable, "-c", "import time; block = bytes(b'x' * {size}); time.sleep(60)"])
block = bytes(b'x' * 120_000_000)
time.sleep(1.5)
beside.kill()
beside.wait()
say('done')
"""


@pytest.mark.parametrize(("size", "stopped"), [(120_000_000, False), (300_000_000, True)])
def test_a_memory_limit_is_that_of_each_process_and_not_of_all_together(stage: Stage, size: int, stopped: bool) -> None:
    trial = stage.play(BESIDE.format(size=size), memory_limit=200_000_000)
    assert (trial.error and trial.error[0]) == ("out-of-memory" if stopped else None)
    assert trial.done != stopped


def test_a_process_within_its_memory_limit_is_not_stopped(stage: Stage) -> None:
    assert stage.play("block = bytes(b'x' * 100_000_000)\ntime.sleep(0.3)\nsay('done')", memory_limit=200_000_000).done
