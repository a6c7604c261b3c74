"""A run that is stopped keeps what was finished, leaves no worker behind, and goes on with what is missing."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from typing import TYPE_CHECKING

import pytest
from finished_runs import LINE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from finished_runs import Finished, Said, Steelyard

    Start = Callable[..., "Running"]

pytestmark = pytest.mark.end_to_end

PATIENCE_S = 120  # much longer than anything takes on a quiet machine
# When a silent worker is stopped. A healthy one takes 0.3 s to its first event on a quiet machine, several times that on a busy one.
SILENCE_S = "5"
# An interrupt that strikes inside `exec` of a text, as importing dataclasses does, makes CPython end by the signal itself
# after all was tidied up; a shell shows 130 for both.
STOPPED = {130, -signal.SIGINT}
# An interrupted `with` leaves files to the garbage collector, which is no error.
QUIET = {"PYTHONWARNINGS": ""}
TWO = (*LINE, "-f", "fake", "-f", "dummy", "--rounds", "3", "--no-certify")


class Running:
    """A steelyard at work whose standard error is followed."""

    def __init__(self, argv: list[str], env: dict[str, str]) -> None:
        self.process = subprocess.Popen(argv, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.lines: list[str] = []
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stderr is not None
        self.lines.extend(iter(self.process.stderr.readline, ""))

    def wait_for(self, text: str) -> None:
        """Wait until it has said something."""
        _until(lambda: any(text in line for line in self.lines), f"{text!r} in {self.lines}")

    def end(self) -> tuple[int, str]:
        """Wait for its end; returns the exit code and everything it said."""
        code = self.process.wait(PATIENCE_S)
        self._reader.join(PATIENCE_S)
        return code, "".join(self.lines)


@pytest.fixture(autouse=True)
def _interrupts_are_heeded() -> Iterator[None]:
    """What a shell began in the background ignores SIGINT, and so does all that it begins: these tests send it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def _until(true: Callable[[], bool], what: str) -> None:
    limit = time.monotonic() + PATIENCE_S
    while not true():
        assert time.monotonic() < limit, f"never came true: {what}"
        time.sleep(0.05)


@pytest.fixture
def start(command: list[str], home: Path, surroundings: Callable[..., dict[str, str]]) -> Iterator[Start]:
    """Start a steelyard and go on without waiting for it; what is still alive at the end is killed."""
    started: list[Running] = []

    def run(*argv: str, **env: str) -> Running:
        started.append(Running([*command, *argv], surroundings(home, **QUIET, **env)))
        return started[-1]

    yield run
    for running in started:
        running.process.kill()
        running.process.communicate()


def events_of(run: Path) -> dict[str, bytes]:
    """Return the events of every finished trial of a run by the trial's name."""
    found = {path.parent.name: path.read_bytes() for path in run.glob("trials/*/events.jsonl")}
    return {name: text for name, text in found.items() if b'"event": "done"' in text}


def only_run(home: Path) -> Path:
    """Return the folder of the only run there is."""
    (folder,) = (path.parent for path in home.glob("runs/*/run.json"))
    return folder


def test_a_stopped_run_keeps_its_finished_processes_and_resume_does_only_the_rest(
    start: Start, steelyard: Steelyard, said: Said, home: Path, quiet_machine: object
) -> None:
    running = start("run", *TWO)
    running.wait_for("round 2:")
    assert "Another steelyard is at work on" in said.refused("run", "--resume", "latest")
    running.process.send_signal(signal.SIGINT)
    code, told = running.end()
    assert code in STOPPED
    run = only_run(home)
    assert f"steelyard run --resume {run.name}" in told
    assert "Traceback" not in told
    before = events_of(run)
    assert 2 <= len(before) < 6
    assert json.loads((run / "run.json").read_text())["state"] == "interrupted"

    done = steelyard("run", "--resume", "latest", "--plain", "--json")
    assert done.returncode == 0
    after = events_of(run)
    assert len(after) == 6
    assert {name: after[name] for name in before} == before
    assert done.stderr.count("   round ") == 6 - len(before)
    assert {
        each["speeds"]["cached"]["processes"] for each in json.loads(done.stdout)["comparisons"][0]["contenders"]
    } == {3}


@pytest.mark.parametrize("command_", ["run", "certify"])
def test_an_interrupt_during_certificates_ends_their_workers_and_marks_the_run(
    start: Start, home: Path, command_: str
) -> None:
    hanging = ("--knob", "fake.fault=hang", "--knob", "fake.fault_step=2")
    line = [word for word in LINE if word not in {"--no-guard", "--no-calibrate"}]
    running = start(command_, *line, "-f", "fake", "-f", "dummy", *hanging)
    _until(
        lambda: any(b'"applied"' in path.read_bytes() for path in home.glob("runs/*/**/events.jsonl")),
        "a certifying worker that has begun",
    )
    running.process.send_signal(signal.SIGINT)
    code, told = running.end()
    assert code in STOPPED
    assert "Traceback" not in told
    assert json.loads((only_run(home) / "run.json").read_text())["state"] == "interrupted"


def test_options_that_a_resumed_run_would_not_heed_are_refused(said: Said, copied: Finished) -> None:
    sentence = said.refused("run", "--resume", "latest", "-f", "fake", "--rounds", "9", "--minutes", "1")
    assert "so --framework, --rounds cannot be given with it" in sentence


def test_a_kill_or_a_closed_terminal_ends_a_run_as_an_interrupt_does(start: Start, home: Path) -> None:
    running = start("run", *TWO)
    running.wait_for("round 1:")
    running.process.send_signal(signal.SIGTERM)
    code, told = running.end()
    assert code in STOPPED
    assert "Every finished process is kept" in told
    assert json.loads((only_run(home) / "run.json").read_text())["state"] == "interrupted"


@pytest.mark.skipif(sys.platform == "win32", reason="there are no such terminals")
def test_the_live_view_leaves_the_terminal_as_it_was(
    command: list[str], surroundings: Callable[..., dict[str, str]], home: Path
) -> None:
    """Standard error is a terminal here, and the run is stopped while the view is drawn."""
    ours, theirs = os.openpty()
    # A worker that hangs keeps the view on the screen until the run is stopped.
    argv = [*command, "run", *(word for word in TWO if word != "--plain"), "--knob", "fake.fault=hang"]
    process = subprocess.Popen(
        argv, env=surroundings(home, **QUIET, TERM="xterm"), stdout=subprocess.PIPE, stderr=theirs
    )
    os.close(theirs)
    shown = b""
    while b"round 1" not in shown:
        shown += os.read(ours, 4096)
    process.send_signal(signal.SIGINT)
    with contextlib.suppress(OSError):  # a terminal that nobody holds any more ends with an error on Linux
        while more := os.read(ours, 4096):
            shown += more
    os.close(ours)
    process.communicate()
    assert process.returncode in STOPPED
    assert b"Traceback" not in shown, shown.decode()
    assert shown.rindex(b"\x1b[?25h") > shown.rindex(b"\x1b[?25l"), "the cursor must be shown again"
    assert b"continue with: steelyard run --resume" in shown


def test_a_worker_does_not_outlive_an_orchestrator_that_is_killed(
    start: Start, steelyard: Steelyard, home: Path
) -> None:
    running = start("run", *TWO, "--knob", "fake.fault=hang")
    _until(
        lambda: any(b'"samples"' in path.read_bytes() for path in home.glob("runs/*/trials/*fake*/events.jsonl")),
        "a hanging worker",
    )
    (events,) = home.glob("runs/*/trials/*fake*/events.jsonl")
    pid = json.loads(events.read_text().splitlines()[0])["pid"]
    os.kill(pid, 0)
    running.process.kill()
    running.end()
    _until(lambda: _gone(pid), f"end of worker {pid}")
    (row,) = json.loads(steelyard("list", "runs", "--json").stdout)
    assert row["state"] == "interrupted"

    done = steelyard("run", "--resume", row["run"], "--silence", SILENCE_S, "--plain", "--json")
    assert done.returncode == 0
    assert f"wrote no event for {SILENCE_S} s" in done.stderr
    by_cell = {each["case"]: each for each in json.loads(done.stdout)["comparisons"][0]["contenders"]}
    assert by_cell["line:small/dummy/scripted"]["speeds"]["cached"]["processes"] == 3
    assert events.read_bytes(), "what the killed process wrote must stay"


def _gone(pid: int) -> bool:
    """A process that has ended, though perhaps nobody has collected it."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8") as file:  # noqa: PTH123
            return file.read().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


def test_finished_processes_that_were_not_indexed_are_not_measured_again(
    copied: Finished, steelyard: Steelyard
) -> None:
    for path in copied.folder.parent.glob("index.sqlite*"):
        path.unlink()
    done = steelyard("run", "--resume", "latest", "--plain", "--json")
    assert done.returncode == 0
    assert "round" not in re.sub(r"after \d rounds", "", done.stderr.partition("== Rounds")[2])
    assert json.loads(done.stdout)["comparisons"] == copied.result["comparisons"]


def test_a_round_that_was_to_be_repeated_when_the_run_was_stopped_is_measured_again_whole(
    copied: Finished, steelyard: Steelyard
) -> None:
    path = copied.folder / "rounds.jsonl"
    notes = [json.loads(line) for line in path.read_text().splitlines()]
    assert [note["round"] for note in notes] == [1, 2, 3]
    path.write_text("".join(json.dumps({**note, "kept": note["round"] != 2}) + "\n" for note in notes))
    before = {each.name for each in copied.folder.glob("trials/*")}
    assert steelyard("run", "--resume", "latest", "--plain").returncode == 0
    added = sorted(each.name for each in copied.folder.glob("trials/*") if each.name not in before)
    assert len(added) == 3
    assert all(name.startswith("r02.1-") for name in added)


def test_a_run_of_other_measuring_code_is_not_continued(copied: Finished, said: Said) -> None:
    _change(copied.folder, worker_hash="0123456789abcdef")
    sentence = said.refused("run", "--resume", "latest")
    assert f"Run {copied.folder.name} was started with different measuring code" in sentence


def test_a_run_of_another_machine_is_not_continued(copied: Finished, said: Said) -> None:
    _change(copied.folder, machine="0123456789abcdef")
    sentence = said.refused("run", "--resume", "latest")
    assert "another machine" in sentence


def test_resume_names_the_nearest_run(copied: Finished, said: Said) -> None:
    wrong = copied.folder.name.replace("line", "lnie")
    sentence = said.refused("run", "--resume", wrong)
    assert f"Did you mean '{copied.folder.name}'?" in sentence


def _change(run: Path, **values: object) -> None:
    path = run / "run.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **values}))
