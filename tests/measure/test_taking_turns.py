"""Processes that take turns: only one computes at a time, and however one ends, the others go on and none is left."""

from __future__ import annotations

import itertools
import json
import os
import signal
import sys
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil
import pytest
import recorded_trials

from steelyard.errors import UserError
from steelyard.measure import turns
from steelyard.measure.launch import Guard, launch
from steelyard.measure.turns import Turns
from steelyard_worker import protocol

if TYPE_CHECKING:
    from collections.abc import Callable

    from steelyard.measure.launch import Watch
    from steelyard.results.trials import Trial

PYTHON = Path(sys.executable)

OPENING = """
import json, os, signal, sys, time
job = json.loads(sys.stdin.readline())
events = open("events.jsonl", "a")
def say(event, **values):
    events.write(json.dumps({"v": 2, "event": event, "t_ns": time.monotonic_ns(), **values}) + "\\n")
    events.flush()
def wait(blocks):
    say("waits", input="cached", blocks=blocks)
    os.killpg(os.getpgrp(), signal.SIGSTOP)
def compute(seconds=0.05):
    say("computes")
    time.sleep(seconds)
    say("computed")
say("hello", method=1, pid=os.getpid())
compute()
"""
BLOCKS = """
for left in range({blocks}, 0, -1):
    wait(left)
    compute()
say("done")
"""


def blocks(count: int) -> str:
    return BLOCKS.format(blocks=count)


@dataclass
class Stage:
    """Processes that are scripts, by name. `shown`: which began (False) or went on (True), in order."""

    root: Path
    stop: threading.Event = field(default_factory=threading.Event)
    shown: list[tuple[str, bool]] = field(default_factory=list)
    seed: str = "1"

    def play(
        self, scripts: dict[str, str], has_room: Callable[[str], bool] = lambda _: True, silence_s: float = 60
    ) -> list[Trial]:
        def start(key: str, watch: Watch) -> Trial:
            worker = self.root / f"worker-{key}"
            worker.mkdir()
            (worker / "__main__.py").write_text(OPENING + scripts[key])
            job = recorded_trials.job(self.folder(key))
            return launch(job, PYTHON, watch, Guard(silence_s, self.stop.is_set), worker)

        taking = Turns(self.stop, self.seed)
        return taking.run(list(scripts), start, has_room, lambda key, goes_on: self.shown.append((key, goes_on)))

    def folder(self, key: str) -> Path:
        return self.root / "trials" / key

    def events(self, key: str) -> list[dict[str, Any]]:
        return [json.loads(line) for line in (self.folder(key) / protocol.EVENTS).read_text().splitlines()]

    def spans(self, key: str) -> list[tuple[int, int]]:
        """Return when a process computed."""
        times = [event["t_ns"] for event in self.events(key) if event["event"] in ("computes", "computed")]
        return list(zip(times[::2], times[1::2], strict=True))

    @property
    def turns(self) -> list[str]:
        """Whose turns there were, in order."""
        return [key for key, goes_on in self.shown if goes_on]


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return Stage(tmp_path)


@pytest.fixture(autouse=True)
def none_is_left() -> Any:
    """Afterwards, no process runs that a test has started. Python's own, such as that of `multiprocessing`, may be older."""
    before = {each.pid for each in psutil.Process().children(recursive=True)}
    yield
    now = psutil.Process().children(recursive=True)
    assert not [each for each in now if each.pid not in before and each.status() != psutil.STATUS_ZOMBIE]


def test_one_process_computes_at_a_time_and_blocks_are_interleaved(stage: Stage) -> None:
    counts = {"a": 4, "b": 2, "c": 4}
    trials = stage.play({key: blocks(count) for key, count in counts.items()})
    assert [trial.done for trial in trials] == [True] * 3
    assert [Path(trial.job.folder).name for trial in trials] == ["a", "b", "c"]
    spans = sorted(span for key in counts for span in stage.spans(key))
    assert len(spans) == 3 + sum(counts.values())
    assert all(end <= start for (_, end), (start, _) in itertools.pairwise(spans))
    assert stage.shown[:3] == [("a", False), ("b", False), ("c", False)]
    assert Counter(stage.turns) == counts
    first_half = stage.turns[:5]
    assert {key: first_half.count(key) for key in counts} == {"a": 2, "b": 1, "c": 2}


def test_a_process_that_is_not_stopped_would_compute_beside_the_others(stage: Stage) -> None:
    """What the first test sees if the mechanism is missing."""
    busy = "say('waits', input='cached', blocks=1)\nsay('computes')\nos.killpg(os.getpgrp(), signal.SIGSTOP)\nsay('computed')\nsay('done')"
    stage.play({"a": busy, "b": blocks(1)})
    spans = sorted(span for key in ("a", "b") for span in stage.spans(key))
    assert any(end > start for (_, end), (start, _) in itertools.pairwise(spans))


def test_a_second_input_has_turns_of_its_own_after_the_first(stage: Stage) -> None:
    both = blocks(2).replace('say("done")', "") + "compute()" + blocks(1)
    stage.play({"a": both, "b": blocks(3)})
    assert Counter(stage.turns[:5]) == {"a": 2, "b": 3}
    assert stage.turns[5:] == ["a"]


@pytest.mark.parametrize(
    ("script", "kind"),
    [
        ("sys.exit(3)", "crash"),
        ("wait(2)\nsay('error', kind='nan-loss', message='It broke.')\nsys.exit(3)", "nan-loss"),
        ("wait(2)\nos.kill(os.getpid(), signal.SIGKILL)", "killed"),
        ("say('waits', input='cached', blocks=2)\nos.kill(os.getpid(), signal.SIGKILL)", "killed"),
    ],
)
def test_the_others_go_on_if_one_ends_early(stage: Stage, script: str, kind: str) -> None:
    failed, whole = stage.play({"a": script, "b": blocks(3)})
    assert failed.error
    assert failed.error[0] == kind
    assert whole.done
    assert stage.turns.count("b") == 3


def test_a_process_that_is_killed_while_it_waits_fails_and_the_others_go_on(stage: Stage) -> None:
    def kill() -> None:
        while not any(key == "b" for key, _ in stage.shown):
            time.sleep(0.01)
        os.kill(stage.events("a")[0]["pid"], signal.SIGKILL)

    killer = threading.Thread(target=kill)
    killer.start()
    failed, whole = stage.play({"a": blocks(3), "b": f"time.sleep(0.5)\n{blocks(3)}"})
    killer.join()
    assert failed.error
    assert failed.error[0] == "killed"
    assert whole.done


def test_a_process_that_says_it_waits_but_does_not_is_stopped_as_hung(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(turns, "STOPS_WITHIN_S", 0.2)
    failed, whole = stage.play(
        {"a": "say('waits', input='cached', blocks=2)\ntime.sleep(600)", "b": blocks(2)}, silence_s=1.0
    )
    assert failed.error
    assert failed.error[0] == "hung"
    assert whole.done


def test_waiting_is_no_silence(stage: Stage) -> None:
    """The limit of silence is for a process that runs: one that waits longer for others is not hung."""
    long = "for _ in range(8): compute(0.5)\n"
    trials = stage.play({"a": blocks(2), "b": long + blocks(1)}, silence_s=3.0)
    assert [trial.error for trial in trials] == [None, None]
    times = [event["t_ns"] for event in stage.events("a")]
    assert max(after - before for before, after in itertools.pairwise(times)) > 4e9


def test_without_room_those_that_wait_finish_first(stage: Stage) -> None:
    stage.play({"a": blocks(2), "b": blocks(2), "c": blocks(1)}, has_room=lambda key: key != "c")
    assert stage.shown[-2:] == [("c", False), ("c", True)]
    assert stage.spans("c")[0][0] > max(end for key in ("a", "b") for _, end in stage.spans(key))


def test_a_stopped_run_ends_all_processes_also_those_that_wait(stage: Stage) -> None:
    def stop() -> None:
        while len(stage.turns) < 2:
            time.sleep(0.01)
        stage.stop.set()

    stopper = threading.Thread(target=stop)
    stopper.start()
    trials = stage.play({"a": blocks(100), "b": blocks(100)})
    stopper.join()
    assert [trial.error and trial.error[0] for trial in trials] == ["killed", "killed"]


def test_an_interrupt_ends_all_processes(stage: Stage) -> None:
    def interrupt(key: str, goes_on: bool) -> None:
        if goes_on:
            raise KeyboardInterrupt

    stage.shown = Interrupting(interrupt)
    with pytest.raises(KeyboardInterrupt):
        stage.play({"a": blocks(2), "b": blocks(2)})
    assert stage.stop.is_set()
    for key in "ab":
        events = stage.events(key)
        assert not psutil.pid_exists(events[0]["pid"])
        assert not [event for event in events if event["event"] in ("error", "done")], (
            "it was stopped, and has not failed"
        )


class Interrupting(list[tuple[str, bool]]):
    """A list that tells of what is added to it."""

    def __init__(self, tell: Callable[[str, bool], None]) -> None:
        super().__init__()
        self._tell = tell

    def append(self, shown: tuple[str, bool]) -> None:
        self._tell(*shown)


def test_an_error_that_ends_the_run_is_raised_and_leaves_no_process(stage: Stage) -> None:
    """Such as a full disk, on which later processes would fail as well."""

    def start(key: str, watch: Watch) -> Trial:
        if key == "b":
            raise UserError("The disk is full.")
        worker = stage.root / "worker"
        worker.mkdir()
        (worker / "__main__.py").write_text(OPENING + blocks(2))
        return launch(recorded_trials.job(stage.folder(key)), PYTHON, watch, Guard(60, stage.stop.is_set), worker)

    with pytest.raises(UserError, match="The disk is full"):
        Turns(stage.stop, "1").run(["a", "b"], start, lambda _: True, lambda *_: None)


COUNTS = """
import subprocess
counting = (
    "import os, time\\nif {forks} and os.fork(): os._exit(0)\\n"
    "while True:\\n    time.sleep(0.005)\\n    open('alive', 'a').write('%d\\\\n' % time.monotonic_ns())"
)
subprocess.Popen([sys.executable, "-c", counting], start_new_session=True)
while not os.path.exists("alive"):
    time.sleep(0.01)
"""


@pytest.mark.parametrize("forks", [False, True])
def test_a_process_in_a_session_of_its_own_stops_while_others_compute(forks: bool, stage: Stage) -> None:
    """It runs in the turns of its worker, and the others compute alone."""
    plain = blocks(3).replace("compute()", "compute(0.2)")
    stage.play({"a": COUNTS.format(forks=forks) + plain, "b": plain})
    beside = [int(line) for line in (stage.folder("a") / "alive").read_text().splitlines()]
    spans = list(computing(stage, "b"))
    within = [stamp for stamp in beside for begin, end in spans if begin < stamp < end]
    assert len(spans) >= 3
    assert within == []
    own = [stamp for stamp in beside for begin, end in computing(stage, "a") if begin < stamp < end]
    assert own, "it goes on with its worker"


def computing(stage: Stage, key: str) -> list[tuple[int, int]]:
    """Return the spans in which a process has computed a block after its first wait, ns."""
    events = [each for each in stage.events(key) if each["event"] in ("computes", "computed", "waits")]
    first = next(number for number, each in enumerate(events) if each["event"] == "waits")
    begins, ends = (
        [each["t_ns"] for each in events[first:] if each["event"] == name] for name in ("computes", "computed")
    )
    return list(zip(begins, ends, strict=True))
