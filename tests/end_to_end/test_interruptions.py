"""A stopped run stores the results of finished processes, leaves no worker running, and can be continued."""

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
from machine_limits import share_limits

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from finished_runs import CommandLine, Finished, Steelyard

    Start = Callable[..., "Running"]

pytestmark = pytest.mark.end_to_end

PATIENCE_S = 120  # much longer than anything takes on a quiet machine
# When a silent worker is stopped. A healthy one takes 0.3 s to its first event on a quiet machine, several times that on a busy one.
SILENCE_S = "5"
# An interrupt that strikes inside `exec` of a text, as importing dataclasses does, makes CPython end by the signal itself
# after all was tidied up; a shell shows 130 for both.
STOPPED = {130, -signal.SIGINT}
# An interrupted `with` can leave open files to the garbage collector, which would warn about them.
QUIET = {"PYTHONWARNINGS": ""}
TWO = (*LINE, "-f", "fake", "-f", "dummy", "--rounds", "3", "--no-certify")


class Running:
    """A running steelyard process whose standard error is read continuously."""

    def __init__(self, argv: list[str], env: dict[str, str]) -> None:
        self.process = subprocess.Popen(argv, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.lines: list[str] = []
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stderr is not None
        self.lines.extend(iter(self.process.stderr.readline, ""))

    def wait_for(self, text: str) -> None:
        """Wait until a line of standard error contains a text."""
        _until(lambda: any(text in line for line in self.lines), f"{text!r} in {self.lines}")

    def end(self) -> tuple[int, str]:
        """Wait for the end of the process; returns the exit code and standard error."""
        code = self.process.wait(PATIENCE_S)
        self._reader.join(PATIENCE_S)
        return code, "".join(self.lines)


@pytest.fixture(autouse=True)
def _interrupts_are_handled() -> Iterator[None]:
    """Handle SIGINT even if the tests were started in the background of a shell, where processes inherit to ignore it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def _until(true: Callable[[], bool], what: str) -> None:
    limit = time.monotonic() + PATIENCE_S
    while not true():
        assert time.monotonic() < limit, f"did not happen in time: {what}"
        time.sleep(0.05)


@pytest.fixture
def start(command: list[str], data_folder: Path, environ_for: Callable[..., dict[str, str]]) -> Iterator[Start]:
    """Start a steelyard process without waiting for its end; processes still running after the test are killed."""
    started: list[Running] = []

    def run(*argv: str, **env: str) -> Running:
        started.append(Running([*command, *argv], environ_for(data_folder, **QUIET, **env)))
        return started[-1]

    yield run
    for running in started:
        running.process.kill()
        running.process.communicate()


def events_of(run: Path) -> dict[str, bytes]:
    """Return {name of a finished trial: content of its events file}."""
    found = {path.parent.name: path.read_bytes() for path in run.glob("trials/*/events.jsonl")}
    return {name: text for name, text in found.items() if b'"event": "done"' in text}


def only_run(data_folder: Path) -> Path:
    """Return the folder of the only run."""
    (folder,) = (path.parent for path in data_folder.glob("runs/*/run.json"))
    return folder


def test_resume_after_an_interrupt_runs_only_the_missing_processes(
    start: Start, steelyard: Steelyard, cli: CommandLine, data_folder: Path
) -> None:
    running = start("run", *TWO)
    running.wait_for("round 2:")
    assert "is in use by another steelyard process." in cli.error("run", "--resume", "latest")
    running.process.send_signal(signal.SIGINT)
    code, stderr = running.end()
    assert code in STOPPED
    run = only_run(data_folder)
    assert f"steelyard run --resume {run.name}" in stderr
    assert "Traceback" not in stderr
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


def test_contenders_that_were_stopped_with_the_run_have_not_failed(
    start: Start, steelyard: Steelyard, data_folder: Path
) -> None:
    """One hangs, and the other one waits for its turn."""
    running = start("run", *TWO, "--knob", "dummy.fault=hang", "--knob", "dummy.fault_step=2", "--seed", "1")
    trials = "runs/*/trials/*/events.jsonl"
    _until(
        lambda: {"samples", "waits"} <= {_last_event(path) for path in data_folder.glob(trials)},
        "a process that hangs, and one that waits",
    )
    running.process.send_signal(signal.SIGINT)
    code, _ = running.end()
    assert code in STOPPED
    (comparison,) = json.loads(steelyard("report", "latest", "--json").stdout)["comparisons"]
    assert [contender["failure"] for contender in comparison["contenders"]] == ["", ""]


def _last_event(path: Path) -> str:
    lines = path.read_text(encoding="utf-8").splitlines()
    return json.loads(lines[-1])["event"] if lines else ""


@pytest.mark.parametrize("command_", ["run", "certify"])
def test_an_interrupt_during_certification_stops_the_workers_and_is_stored_as_the_state(
    start: Start, data_folder: Path, command_: str
) -> None:
    hanging = ("--knob", "fake.fault=hang", "--knob", "fake.fault_step=2")
    line = [word for word in LINE if word != "--no-guard"]
    running = start(command_, *line, "-f", "fake", "-f", "dummy", *hanging)
    _until(
        lambda: any(b'"applied"' in path.read_bytes() for path in data_folder.glob("runs/*/**/events.jsonl")),
        "a certifying worker that has started",
    )
    run = only_run(data_folder)
    saved = (
        run / "certificates" / "fake" / "perturbation0.partial"
    )  # as of a large network; of its size nothing is written
    saved.mkdir(parents=True)
    with (saved / "tensors.bin").open("wb") as file:
        file.truncate(2_500_000_000)
    running.process.send_signal(signal.SIGINT)
    code, stderr = running.end()
    assert code in STOPPED
    assert "Traceback" not in stderr
    assert json.loads((run / "run.json").read_text())["state"] == "interrupted"
    continued = command_ == "run"
    line_of_the_size = (
        "Tensors of unfinished certificates take 2.5 GB until then. To delete them with the run: "
        f"steelyard runs remove {run.name}\n"
    )
    assert (line_of_the_size in stderr) is saved.exists() is continued


def test_options_that_resume_would_ignore_are_rejected(cli: CommandLine, copied: Finished) -> None:
    message = cli.error("run", "--resume", "latest", "-f", "fake", "--rounds", "9", "--minutes", "1")
    assert "so --framework, --rounds cannot be given with it" in message
    message = cli.error(
        "run", "--resume", "latest", "--no-certify", "--data", "x", "--device", "cpu", "--delta", "0.02"
    )
    assert "so --device, --data, --no-certify cannot be given with it" in message, "--delta 0.02 changes nothing"


def test_sigterm_stops_a_run_like_an_interrupt(start: Start, data_folder: Path) -> None:
    running = start("run", *TWO)
    running.wait_for("round 1:")
    running.process.send_signal(signal.SIGTERM)
    code, stderr = running.end()
    assert code in STOPPED
    assert "The results of finished processes are stored. To continue: steelyard run --resume" in stderr
    assert "Tensors of" not in stderr, "nothing large is kept"
    assert json.loads((only_run(data_folder) / "run.json").read_text())["state"] == "interrupted"


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no pseudo-terminals")
def test_the_live_view_restores_the_terminal_after_an_interrupt(
    command: list[str], environ_for: Callable[..., dict[str, str]], data_folder: Path
) -> None:
    """Standard error is a terminal here, and the run is stopped while the live view is shown."""
    ours, theirs = os.openpty()
    # A worker that hangs keeps the live view on the screen until the run is stopped.
    argv = [*command, "run", *(word for word in TWO if word != "--plain"), "--knob", "fake.fault=hang"]
    process = subprocess.Popen(
        argv, env=environ_for(data_folder, **QUIET, TERM="xterm"), stdout=subprocess.PIPE, stderr=theirs
    )
    os.close(theirs)
    shown = b""
    while b"round 1" not in shown:
        shown += os.read(ours, 4096)
    process.send_signal(signal.SIGINT)
    with contextlib.suppress(OSError):  # on Linux, reading a terminal that no process has open is an error
        while more := os.read(ours, 4096):
            shown += more
    os.close(ours)
    process.communicate()
    assert process.returncode in STOPPED
    assert b"Traceback" not in shown, shown.decode()
    assert shown.rindex(b"\x1b[?25h") > shown.rindex(b"\x1b[?25l"), "the cursor must be shown again"
    assert b"To continue: steelyard run --resume" in shown


def test_a_worker_ends_if_the_orchestrator_is_killed(start: Start, steelyard: Steelyard, data_folder: Path) -> None:
    running = start("run", *TWO, "--knob", "fake.fault=hang")
    _until(
        lambda: any(
            b'"samples"' in path.read_bytes() for path in data_folder.glob("runs/*/trials/*fake*/events.jsonl")
        ),
        "a hanging worker",
    )
    (events,) = data_folder.glob("runs/*/trials/*fake*/events.jsonl")
    pid = json.loads(events.read_text().splitlines()[0])["pid"]
    os.kill(pid, 0)
    running.process.kill()
    running.end()
    _until(lambda: _gone(pid), f"end of worker {pid}")
    (row,) = json.loads(steelyard("list", "runs", "--json").stdout)
    assert row["state"] == "interrupted"

    done = steelyard("run", "--resume", row["run"], "--silence", SILENCE_S, "--plain", "--json")
    assert done.returncode == 3
    assert f"wrote no event for {SILENCE_S} s" in done.stderr
    by_cell = {each["case"]: each for each in json.loads(done.stdout)["comparisons"][0]["contenders"]}
    assert by_cell["line:small/dummy/scripted"]["speeds"]["cached"]["processes"] == 3
    assert events.read_bytes(), "what the killed process wrote must stay"


def _gone(pid: int) -> bool:
    """Return whether a process has ended; it may still be a zombie."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8") as file:  # noqa: PTH123
            return file.read().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


def test_finished_processes_that_are_not_in_the_index_are_not_measured_again(
    copied: Finished, steelyard: Steelyard
) -> None:
    for path in copied.folder.parent.glob("index.sqlite*"):
        path.unlink()
    done = steelyard("run", "--resume", "latest", "--plain", "--json")
    assert done.returncode == 0
    assert "round" not in re.sub(r"after \d rounds", "", done.stderr.partition("== Rounds")[2])
    assert json.loads(done.stdout)["comparisons"] == copied.result["comparisons"]


def test_a_disturbed_round_that_was_not_repeated_before_the_stop_is_measured_again_completely(
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


def test_a_run_cannot_be_continued_with_different_measuring_code(copied: Finished, cli: CommandLine) -> None:
    _change(copied.folder, worker_hash="0123456789abcdef")
    message = cli.error("run", "--resume", "latest")
    assert f"Run {copied.folder.name} was started with different measuring code" in message


def test_a_run_cannot_be_continued_on_another_machine(copied: Finished, cli: CommandLine) -> None:
    _change(copied.folder, machine="0123456789abcdef")
    assert "another machine" in cli.error("run", "--resume", "latest")


def test_resume_suggests_the_nearest_run(copied: Finished, cli: CommandLine) -> None:
    wrong = copied.folder.name.replace("line", "lnie")
    assert f"Did you mean '{copied.folder.name}'?" in cli.error("run", "--resume", wrong)


def _change(run: Path, **values: object) -> None:
    path = run / "run.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **values}))


def test_a_second_run_waits_for_the_first_or_says_that_it_does_not(
    start: Start, steelyard: Steelyard, data_folder: Path, tmp_path: Path, machine_limits: Path
) -> None:
    share_limits(tmp_path / "own-cache", machine_limits)
    cache = {"STEELYARD_CACHE": str(tmp_path / "own-cache")}
    first = start("run", *TWO, "--knob", "fake.fault=hang", **cache)
    first.wait_for("round 1:")
    guarded = [word for word in TWO if word != "--no-guard"]
    second = start("run", *guarded, "--knob", "fake.step_us=1000", **cache)
    second.wait_for(f"This machine is in use by process {first.process.pid} of user ")
    names = {path.parent.name for path in data_folder.glob("runs/*/run.json")}
    second.wait_for("== Waiting for run ")
    assert any(f"== Waiting for run {name}\n" in second.lines for name in names)
    third = steelyard("run", *TWO, "--json", **cache)
    assert third.returncode == 0
    assert "this one does not wait (--no-guard)." in third.stderr
    assert "SharedMachine" in {warning["name"] for warning in json.loads(third.stdout)["warnings"]}
    assert second.process.poll() is None
    first.process.kill()
    second.wait_for("round 1:")
