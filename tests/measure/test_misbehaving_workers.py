"""Code of an implementation that removes its record, prints without end or leaves processes: one trial fails or says so, no more."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil
import pytest
import recorded_trials

from measure.staged_workers import HANG, OPENING, PYTHON, Stage
from steelyard.files import bounded_log
from steelyard.host import left_behind
from steelyard.host.left_behind import Origin
from steelyard.measure import launch, output
from steelyard.results import trials
from steelyard_worker import protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

MIB = 2**20

# What a worker does to its folder, which it has as its own -> what the message says of it.
REMOVALS = {
    "import shutil; shutil.rmtree(here)": "removed the folder of its trial",
    "import shutil; shutil.rmtree(here); open(here, 'w').write('mine')": "removed the folder of its trial",
    "import shutil; shutil.rmtree(here); os.symlink(os.path.dirname(os.path.dirname(here)), here)": "removed the folder of",
    "import shutil; shutil.rmtree(os.path.dirname(here))": "removed the folder of its trial",
    "os.remove('events.jsonl')": "removed events.jsonl",
    "os.remove('events.jsonl'); os.mkfifo('events.jsonl')": "removed events.jsonl",
    "os.rename('events.jsonl', 'other.jsonl')": "removed events.jsonl",
}


@pytest.mark.parametrize("end", ["say('done')", "sys.exit(3)", "os.kill(os.getpid(), signal.SIGKILL)"])
@pytest.mark.parametrize("removal", REMOVALS)
def test_a_worker_that_removes_its_record_has_failed_and_the_record_says_so(
    removal: str, end: str, stage: Stage
) -> None:
    (stage.root / "kept").write_text("of another trial")

    def watch(event: dict[str, Any]) -> None:
        if event["event"] == "samples":
            (stage.folder / "seen").touch()

    waits = "block(0, 5)\nwhile not os.path.exists('seen'):\n    time.sleep(0.01)"
    trial = stage.play(f"here = os.getcwd()\n{waits}\n{removal}\n{end}", watch=watch)
    assert not trial.done
    assert trial.error is not None
    assert trial.error[0] == "crash"
    assert REMOVALS[removal] in trial.error[1]
    assert trials.read(stage.folder).error == trial.error
    assert stage.folder.is_dir() and not stage.folder.is_symlink()
    assert (stage.root / "kept").read_text() == "of another trial"


def test_a_worker_that_removes_its_job_only_has_lost_nothing(stage: Stage) -> None:
    trial = stage.play("os.remove('job.json'); block(0, 5); say('done')")
    assert trial.done
    assert trials.read(stage.folder).job == trial.job


def test_a_worker_that_removes_its_record_and_goes_on_is_ended(stage: Stage) -> None:
    """Nobody would learn that it waits for its turn, or why it has failed."""
    trial = stage.play("import shutil; shutil.rmtree(os.getcwd()); time.sleep(600)", silence_s=500)
    assert trial.error is not None
    assert trial.error[0] == "crash"
    assert "removed the folder of its trial" in trial.error[1]
    assert trials.read(stage.folder).error == trial.error


def log_of(stage: Stage) -> bytes:
    return (stage.folder / protocol.LOG).read_bytes()


PRINTS = "print('the first line')\nfor number in range({0}):\n    print('x' * 1023, flush=number % 100 == 0)\nprint('the last line', flush=True)\n"


@pytest.mark.parametrize("end", ["say('done')", "sys.exit(1)"])
def test_of_a_long_log_the_beginning_and_the_end_are_kept(end: str, stage: Stage) -> None:
    trial = stage.play(PRINTS.format(40 * 1024) + end)
    kept = log_of(stage)
    assert len(kept) < 8 * MIB + 200
    assert kept.startswith(b"the first line\n")
    assert kept.endswith(b"the last line\n")
    (note,) = [line for line in kept.splitlines() if line.startswith(b"[steelyard: ")]
    left_out = int(note.split()[3].replace(b",", b""))
    printed = 40 * MIB + len("the first line\nthe last line\n")
    assert 8 * MIB < left_out <= printed - len(kept.replace(b"\n" + note + b"\n", b""))
    if trial.error:
        assert re.fullmatch(
            r"The worker ended with exit code 1: the last line\. It printed at least \d\d MB; the log keeps the first and "
            r"the last 4 MiB\.",
            trial.error[1],
        )
    assert trial.done is (trial.error is None)


def test_a_log_is_shortened_while_its_process_runs(stage: Stage) -> None:
    waits = "while os.stat('output.log').st_blocks > 17 * 2048:\n    time.sleep(0.02)\nprint('goes on', flush=True)\nsay('done')"
    assert stage.play(PRINTS.format(64 * 1024) + waits, silence_s=120).done
    assert log_of(stage).endswith(b"the last line\ngoes on\n")


def test_a_log_that_is_read_afterwards_is_whole_and_its_process_is_ended_if_it_is_endless(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is left out of it could be the kernel that is looked for."""
    assert verbose(stage, PRINTS.format(20 * 1024) + "say('done')").done
    assert len(log_of(stage)) > 20 * MIB
    monkeypatch.setattr(output, "LONGEST_READ_BYTES", 21 * MIB)
    shutil.rmtree(stage.folder)
    trial = verbose(stage, PRINTS.format(22 * 1024) + "time.sleep(600)")
    assert trial.error is not None
    assert trial.error[0] == "crash"
    assert "printed more than 0.022 GB into a log that is read afterwards, and was stopped" in trial.error[1]


def verbose(stage: Stage, script: str) -> trials.Trial:
    worker = stage.root / "worker"
    worker.mkdir(exist_ok=True)
    (worker / "__main__.py").write_text(OPENING + script)
    job = replace(recorded_trials.job(stage.folder, variables={"ONEDNN_VERBOSE": "1"}), kind="certify")
    return launch.launch(job, PYTHON, stage.heard.append, launch.Guard(120), worker)


@pytest.mark.parametrize("has_holes", [True, False])
@pytest.mark.parametrize("sizes", [[1], [8 * MIB], [17 * MIB], [17 * MIB, 17 * MIB, 3], [100 * MIB]])
def test_a_log_has_its_first_and_last_bytes_however_often_it_was_shortened(
    sizes: list[int], has_holes: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not has_holes:
        monkeypatch.setattr(bounded_log, "_punched", lambda *_: False)
    path, printed = tmp_path / "log", b""
    with bounded_log.BoundedLog(path) as log, path.open("ab") as process:
        for number, size in enumerate(sizes):
            part = (b"%9d\n" % number) * (size // 10)
            printed += part
            process.write(part)
            process.flush()
            log.bound()
            if has_holes:
                assert path.stat().st_blocks * 512 <= bounded_log.LONGEST_BYTES + MIB
        log.end()
        kept = path.read_bytes()
        if len(printed) <= 2 * bounded_log.KEPT_BYTES:
            assert (kept, log.left_out) == (printed, 0)
            return
        note = b"\n" + bounded_log.OMITTED.format(log.left_out, 4).encode()
        first, last = kept.split(note)
    assert printed.startswith(first)
    assert printed.endswith(last)
    assert len(first) == bounded_log.KEPT_BYTES
    assert bounded_log.KEPT_BYTES - 10 <= len(last) <= bounded_log.KEPT_BYTES
    assert log.left_out == len(printed) - len(first) - len(last)


SLEEPS = "[sys.executable, '-c', 'import time; time.sleep(600)']"
NOTES = "with open('pids', 'a') as file: file.write(f'{pid}\\n')\n"
# Ways to start a process that does not end with its worker.
WAYS = {
    "a session of its own": f"pid = subprocess.Popen({SLEEPS}, start_new_session=True).pid\n{NOTES}",
    "no variables": f"pid = subprocess.Popen({SLEEPS}, start_new_session=True, env={{}}).pid\n{NOTES}",
    "another folder": f"pid = subprocess.Popen({SLEEPS}, start_new_session=True, cwd='/').pid\n{NOTES}",
    "a double fork": (
        "first = os.fork()\nif first == 0:\n    os.setsid()\n    pid = os.fork()\n    if pid:\n"
        "        with open('pids', 'a') as file: file.write(f'{pid}\\n')\n        os._exit(0)\n"
        "    os.chdir('/')\n    time.sleep(600)\n    os._exit(0)\nos.waitpid(first, 0)\n"
    ),
    "a group of its own": (f"pid = subprocess.Popen({SLEEPS}, process_group=0).pid\n{NOTES}"),
    "a shell that has ended": ("subprocess.run(['sh', '-c', 'setsid sleep 600 & echo $! >> pids'])\n"),
}


def alive(pid: int) -> bool:
    try:
        return bool(psutil.Process(pid).status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


def pids(folder: Path) -> list[int]:
    return [int(line) for line in (folder / "pids").read_text().splitlines()]


@pytest.fixture
def _patience(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launch.processes, "PATIENCE_S", 0.2)


@pytest.mark.usefixtures("_patience")
@pytest.mark.parametrize("end", ["say('done')", "sys.exit(3)", HANG])
@pytest.mark.parametrize("way", WAYS)
def test_a_process_that_is_left_behind_is_ended_and_the_trial_says_so(way: str, end: str, stage: Stage) -> None:
    trial = stage.play(f"import subprocess\n{WAYS[way]}\nblock(0, 5)\n{end}")
    left = pids(stage.folder)
    assert len(left) == 1
    assert not alive(left[0])
    if end == HANG and not trial.warnings:
        return  # a process that is ended is ended with all that it has started
    (warning,) = trial.warnings
    assert (warning["name"], warning["count"]) == ("left-processes", 1)
    assert trials.read(stage.folder).warnings == trial.warnings
    if trial.error:
        assert "It left 1 process behind (" in trial.error[1]
        assert "), which was ended." in trial.error[1]
        assert trials.read(stage.folder).error == trial.error
    else:
        assert trial.done


def test_a_process_that_ends_soon_by_itself_is_no_matter(stage: Stage) -> None:
    soon = "import subprocess\nsubprocess.Popen([sys.executable, '-c', ''], start_new_session=True)\nsay('done')"
    trial = stage.play(soon)
    assert (trial.done, trial.warnings) == (True, ())


@pytest.fixture
def sleeper(stage: Stage) -> Iterator[Callable[..., subprocess.Popen[bytes]]]:
    """Start processes that are none of a trial's; they are ended after the test."""
    started: list[subprocess.Popen[bytes]] = []

    def start(**options: Any) -> subprocess.Popen[bytes]:
        started.append(subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], **options))
        return started[-1]

    yield start
    for each in started:
        each.kill()
        each.wait()


@pytest.mark.usefixtures("_patience")
def test_nobody_elses_process_is_ended(stage: Stage, sleeper: Callable[..., subprocess.Popen[bytes]]) -> None:
    """Those of other trials, and what a person has started in the folder of this one, such as a pager, stay."""
    stage.folder.mkdir(parents=True)
    others = [
        sleeper(start_new_session=True),
        sleeper(cwd=stage.folder),
        sleeper(cwd=stage.folder, start_new_session=True),
        sleeper(env={left_behind.VARIABLE: "/tmp/steelyard-of-another"}, start_new_session=True),
    ]
    trial = stage.play(f"import subprocess\n{WAYS['a session of its own']}\nsay('done')")
    assert trial.warnings[0]["count"] == 1
    assert all(alive(each.pid) for each in others)


def test_no_process_is_of_an_origin_that_nothing_inherits() -> None:
    assert left_behind.living(Origin(-1, "", "", time.time())) == []


def test_the_record_of_what_was_left_is_an_event(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launch.processes, "PATIENCE_S", 0.0)
    stage.play(f"import subprocess\n{WAYS['a session of its own']}\nsay('done')")
    events = [json.loads(line) for line in (stage.folder / protocol.EVENTS).read_text().splitlines()]
    (found,) = [each for each in events if each["event"] == "warning"]
    assert found["programs"] == [Path(sys.executable).name]
