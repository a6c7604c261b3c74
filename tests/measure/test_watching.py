"""What the launcher sees of a process: clocks that run late, CPU time, and where it is written down."""

from __future__ import annotations

import subprocess
import sys
import time
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
import recorded_trials

from measure.staged_workers import PYTHON
from steelyard.catalog import frameworks
from steelyard.measure import watching
from steelyard.measure.watching import Watching
from steelyard.results import trials

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from measure.staged_workers import Stage

SECOND = 10**9
READS = "import time; end = time.process_time() + 0.3\nwhile time.process_time() < end: pass"


def _ended(seen: Watching, code: str = "") -> None:
    process = subprocess.Popen([sys.executable, "-c", code])
    while not seen.has_ended(process):
        time.sleep(0.01)
    assert process.returncode == 0


@pytest.fixture
def at(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    """Return what sets the clock of the launcher, seconds."""

    def set_clock(seconds: float) -> None:
        monkeypatch.setattr(watching.time, "perf_counter_ns", lambda: round(seconds * SECOND))

    return set_clock


@pytest.mark.parametrize(("pace", "behind"), [(1.0, 0.0), (0.5, 4.8), (0.9, 0.75)])
def test_events_of_a_clock_that_runs_slow_lie_before_the_last_look(
    at: Callable[[float], None], pace: float, behind: float
) -> None:
    """The launcher looks every 0.1 s, and an event is written every half second, right before a look."""
    seen = Watching(100 * SECOND)
    for look in range(1, 101):
        at(100 + look / 10)
        seen.looks()
        if look % 5 == 0:
            seen.found({"t_ns": round((100 + pace * look / 10) * SECOND)})
    _ended(seen)
    found = seen.record(several=False)
    assert found
    assert (
        found.behind_ns / SECOND
        == pytest.approx(max(0, (1 - pace) * 9 - 0.1), abs=0.01)
        == pytest.approx(behind, abs=0.8)
    )


def test_one_event_that_was_written_late_says_nothing_of_the_clock(at: Callable[[float], None]) -> None:
    """A disk that stands still delays one event, whose time was taken before; the next one has its own."""
    seen = Watching(100 * SECOND)
    for look, told in ((101, 101), (110, 102), (120, 120), (130, 130)):
        at(look)
        seen.looks()
        seen.found({"t_ns": told * SECOND})
    _ended(seen)
    found = seen.record(several=False)
    assert found
    assert found.behind_ns == 0


def test_a_launcher_that_stood_still_sees_no_late_clock(at: Callable[[float], None]) -> None:
    """Whoever stops the orchestrator for a while makes it see events late, but all of them after its last look."""
    seen = Watching(100 * SECOND)
    for look in (101, 900):
        at(look)
        seen.looks()
    for told in (200, 300, 400):
        seen.found({"t_ns": told * SECOND})
    _ended(seen)
    found = seen.record(several=False)
    assert found
    assert found.behind_ns == 0


@pytest.mark.skipif(sys.platform != "linux", reason="the kernel is asked before it forgets the process")
def test_the_cpu_time_of_a_process_is_that_of_the_kernel() -> None:
    seen = Watching(time.perf_counter_ns())
    _ended(seen, READS)
    found = seen.record(several=False)
    assert found
    assert found.cpu_ns is not None
    assert found.cpu_ns > 0.25 * SECOND
    assert found.spawned_ns < found.ended_ns
    several = seen.record(several=True)
    assert several
    assert several.cpu_ns is None


def test_without_an_end_nothing_is_recorded() -> None:
    assert Watching(1).record(several=False) is None


def _unscripted(monkeypatch: pytest.MonkeyPatch) -> None:
    known = frameworks.framework
    monkeypatch.setattr(frameworks, "framework", lambda name: replace(known(name), scripted=False))


def test_the_launcher_adds_what_it_saw_after_the_last_event(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    """The times of the staged worker are all 0, which lies before the process was started."""
    _unscripted(monkeypatch)
    trial = stage.play("block(0, 5); say('phase', name='x', elapsed_ns=1); say('done')", PYTHON)
    assert trial.watched
    assert stage.last_event()["event"] == "watched"
    again = trials.read(stage.folder)
    assert again.watched == trial.watched
    assert trial.watched.behind_ns >= trial.watched.spawned_ns > 0


def test_a_scripted_clock_and_a_process_that_failed_are_not_watched(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert stage.play("block(0, 5); say('done')").watched is None
    assert stage.last_event()["event"] == "done"
    _unscripted(monkeypatch)
    assert stage.play("sys.exit(3)").watched is None
    assert stage.last_event()["event"] == "error"


def test_on_a_full_disk_nothing_is_added(tmp_path: Path) -> None:
    folder = recorded_trials.write(tmp_path / "r", recorded_trials.job(tmp_path / "r"), recorded_trials.events())
    (folder / "events.jsonl").unlink()
    (folder / "events.jsonl").mkdir()
    watching.append(folder, trials.Watched(0, 1, 0, 1))
