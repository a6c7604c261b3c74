"""A worker that is one script, launched as any other, and a clock that does not wait."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import recorded_trials

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
        self,
        script: str,
        python: Path = PYTHON,
        silence_s: float = 30.0,
        watch: Watch | None = None,
        memory_limit: int = 0,
    ) -> trials.Trial:
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
