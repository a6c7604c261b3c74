"""A process that takes turns stops itself before each counted block; what it counts is as without turns."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import psutil
import pytest
from worker.scripted_training import STEP_NS, points, trained

from steelyard_worker import protocol, steady, tensors, trial

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from steelyard.results.trials import Trial

TURNS = 4


@pytest.fixture
def stopped(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    """Instead of being stopped, a process notes which group it would have stopped."""
    found: list[tuple[int, int]] = []
    monkeypatch.setattr(os, "killpg", lambda group, number: found.append((group, number)))
    return found


def measured(folder: Path, **schedule: object) -> Trial:
    folder.mkdir()
    (folder / "data").mkdir()
    batch = {"point": np.zeros((16, 8), np.float32), "label": np.zeros(16, np.int32)}
    tensors.write(folder / "synthetic", batch)
    data = replace(points(folder / "data"), synthetic=str(folder / "synthetic"))
    return trained("sequential", folder / "trial", data, **{"inputs": ("pipeline",), "train_steps": 20, **schedule})


def events(trial: Trial) -> list[tuple[str, object]]:
    """Return the waits and the blocks after the warm-up, in order."""
    read = [
        (each["event"], each["blocks"] if each["event"] == "waits" else (each["phase"], each["steps"]))
        for each in protocol.read_events(trial.folder / protocol.EVENTS)
        if each["event"] in ("waits", "samples")
    ]
    return read[next(place for place, (name, _) in enumerate(read) if name == "waits") :]


def test_each_counted_block_follows_a_wait_and_a_step_that_fills_the_caches(
    tmp_path: Path, stopped: list[tuple[int, int]]
) -> None:
    trial = measured(tmp_path / "t", turns=TURNS, turn_min_s=0.1, counted_min=40, counted_max=40)
    size = steady.block_steps(STEP_NS / 1e9, 0.1, 5)
    assert size == 10
    assert events(trial)[: 3 * TURNS] == [
        each
        for left in range(TURNS, 0, -1)
        for each in (("waits", left), ("samples", ("warm-up", 1)), ("samples", ("counted", size)))
    ]
    assert stopped == [(os.getpgrp(), signal.SIGSTOP)] * TURNS
    assert trial.location_ns("pipeline") == STEP_NS
    assert sum(block.steps for block in trial.counted("pipeline")) == 40


def test_a_slow_step_needs_no_step_before_it(
    tmp_path: Path, stopped: list[tuple[int, int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    from steelyard_worker import measure

    monkeypatch.setattr(measure, "FILLS_CACHES_S", STEP_NS / 1e9)
    trial = measured(tmp_path / "t", turns=TURNS, turn_min_s=0.1, counted_min=40, counted_max=40)
    assert [name for name, what in events(trial)[:4]] == ["waits", "samples"] * 2
    assert len(stopped) == TURNS


def test_without_turns_nothing_waits(tmp_path: Path, stopped: list[tuple[int, int]]) -> None:
    trial = measured(tmp_path / "t", turns=0)
    assert not [each for each in protocol.read_events(trial.folder / protocol.EVENTS) if each["event"] == "waits"]
    assert not stopped


def test_the_cached_batch_has_turns_too_but_no_more_steps_for_them(
    tmp_path: Path, stopped: list[tuple[int, int]]
) -> None:
    trial = measured(tmp_path / "t", turns=TURNS, turn_min_s=0.1, inputs=("pipeline", "cached"), counted_min=10)
    assert len(trial.counted("cached")) == 1
    assert len(stopped) == len(trial.counted("pipeline")) + 1


def test_it_is_evaluated_after_the_same_number_of_steps_as_without_turns(
    tmp_path: Path, stopped: list[tuple[int, int]]
) -> None:
    del stopped
    found = [
        measured(tmp_path / str(turns), turns=turns, train_steps=60, counted_min=20, counted_max=20).evaluation
        for turns in (0, TURNS)
    ]
    assert all(found)
    assert [each.steps for each in found if each] == [60, 60]


@pytest.mark.parametrize(
    ("start_s", "block_s", "turns"), [(4.0, 0.25, 6), (4.0, 0.5, 4), (4.0, 3.0, 1), (20.0, 5.0, 2), (0.1, 0.25, 1)]
)
def test_turns_take_at_most_half_as_long_as_the_start(start_s: float, block_s: float, turns: int) -> None:
    assert steady.turns(start_s, block_s, 6) == turns


FORKS = """
import os, signal, sys, time
from steelyard_worker import trial
trial._die_with_parent()
child = os.fork()
if child == 0:
    os.kill(os.getpid(), signal.SIGSTOP)
    time.sleep(600)
print(child, flush=True)
time.sleep(600)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux's kernel ends a process with its parent")
def test_a_stopped_loader_process_ends_with_its_worker() -> None:
    with subprocess.Popen([sys.executable, "-c", FORKS], stdout=subprocess.PIPE, text=True) as worker:
        assert worker.stdout is not None
        child = psutil.Process(int(worker.stdout.readline()))
        until(lambda: child.status() == psutil.STATUS_STOPPED)
        worker.kill()
    until(lambda: not child.is_running() or child.status() == psutil.STATUS_ZOMBIE)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux's kernel ends a process with its parent")
def test_a_process_whose_parent_has_already_ended_ends_and_does_not_wait_for_ever() -> None:
    script = "import os\nfrom steelyard_worker import trial\ntrial._die_with_parent()\nassert 'STEELYARD_PARENT' not in os.environ"

    def ends_with(parent: int) -> int:
        environ = os.environ | {"STEELYARD_PARENT": str(parent)}
        return subprocess.run([sys.executable, "-c", script], env=environ, check=False).returncode

    assert ends_with(os.getpid()) == 0
    assert ends_with(1) == trial.EXIT_STOPPED


def until(true: Callable[[], bool]) -> None:
    limit = time.monotonic() + 60
    while not true():
        assert time.monotonic() < limit
        time.sleep(0.01)
