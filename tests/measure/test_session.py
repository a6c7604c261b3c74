"""The session: processes, parallel work and entries about rounds."""

from __future__ import annotations

import shutil
import threading
import time
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest
import recorded_trials

from measure import scripted_session
from steelyard.console import Screen
from steelyard.environments import Environment
from steelyard.environments.pending import already
from steelyard.errors import ResumableError, UserError
from steelyard.inputs.case_inputs import recipe
from steelyard.measure import launch
from steelyard.measure.session import Session
from steelyard.plan import resolve
from steelyard.plan.options import Options
from steelyard.results.trials import Trial
from steelyard_worker.job_kinds import KINDS

if TYPE_CHECKING:
    from steelyard_worker.protocol import Job

WORKLOADS = Path(__file__).parents[1] / "workloads"


@pytest.fixture
def session(tmp_path: Path) -> Session:
    """A session with a folder and nothing else."""
    missing = cast("Any", None)
    return Session(missing, tmp_path, already({}), {}, missing, missing)


def test_all_items_are_processed_in_parallel(session: Session) -> None:
    done: list[int] = []
    session.side_by_side(done.append, range(10), 3)
    assert sorted(done) == list(range(10))
    assert not session.stop.is_set()


def test_an_interrupt_stops_running_work_and_starts_no_more(session: Session) -> None:
    started: list[int] = []
    stopped: list[bool] = []
    both = threading.Barrier(2, timeout=10)

    def work(number: int) -> None:
        started.append(number)
        if number < 2:
            both.wait()
        if number == 0:
            raise KeyboardInterrupt
        stopped.append(session.stop.wait(5))

    with pytest.raises(KeyboardInterrupt):
        session.side_by_side(work, range(10), 2)
    assert stopped
    assert all(stopped)
    assert sorted(started) in ([0, 1], [0, 1, 2])


def note(number: int, kept: Any = True) -> dict[str, Any]:
    return {
        "group": "line:small",
        "round": number,
        "attempt": 0,
        "kept": kept,
        "reasons": [],
        "severity": 0.0,
        "host_noise": {},
    }


def test_entries_about_rounds_are_read_in_order(session: Session) -> None:
    assert session.noted_rounds() == []
    session.note_round(**note(1, kept=False))
    session.note_round(**note(1))
    assert session.noted_rounds() == [note(1, kept=False), note(1)]


def test_an_incomplete_entry_is_ignored_and_does_not_damage_the_next(session: Session) -> None:
    session.note_round(**note(1))
    with (session.folder / "rounds.jsonl").open("a") as file:
        file.write('{"round": 2, "quiet": {"steal": 0.0}')
    assert session.noted_rounds() == [note(1)]
    session.note_round(**note(2))
    assert session.noted_rounds() == [note(1), note(2)]


def test_a_damaged_entry_is_named_and_the_others_are_read(session: Session, capsys: pytest.CaptureFixture[str]) -> None:
    session = replace(session, screen=Screen())
    for number in (1, 2, 3):
        session.note_round(**note(number, kept="yes" if number == 2 else True))
    assert [each["round"] for each in session.noted_rounds()] == [1, 3]
    assert (
        "rounds.jsonl, line 2, is damaged and was left out: the line.kept must be true or false"
        in capsys.readouterr().err
    )


@dataclass
class Calls:
    """Stands for the launcher, the index and the screen: stores what each was given."""

    error: tuple[str, str] | None = None
    launched: list[tuple[Job, Path, Any, launch.Guard]] = field(default_factory=list)
    indexed: list[tuple[str, Trial]] = field(default_factory=list)
    finished_trials: list[Trial] = field(default_factory=list)
    events: list[dict[str, Any]] = field(default_factory=list)

    def launch(self, job: Job, python: Path, watch: Any, guard: launch.Guard, partners: None) -> Trial:
        assert partners is None
        self.launched.append((job, python, watch, guard))
        watch({"event": "hello"})
        return Trial(Path(job.folder), job, error=self.error, done=self.error is None)

    def add_trial(self, run: str, trial: Trial) -> None:
        self.indexed.append((run, trial))

    def event(self, event: dict[str, Any]) -> None:
        self.events.append(event)

    def finished(self, trial: Trial) -> None:
        self.finished_trials.append(trial)


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> Calls:
    """Replace the launcher."""
    found = Calls()
    monkeypatch.setattr(launch, "launch", found.launch)
    return found


@pytest.fixture
def connected(tmp_path: Path, calls: Calls) -> Session:
    """A session whose launcher, index and screen are `calls`; a worker may be silent for 7 s."""
    plan = resolve.plan(
        Options(workloads=("line",), frameworks=("fake",), workload_folders=(str(WORKLOADS),), silence_s=7.0)
    )
    environments = {
        name: Environment(name, name, "1", Path(f"/{name}/python"), "3.11", {}) for name in ("fake", "other")
    }
    shared = cast("Any", calls)
    return Session(plan, tmp_path, already(environments), {}, shared, shared)


def test_a_process_of_a_round_is_shown_and_indexed(connected: Session, calls: Calls) -> None:
    job = recorded_trials.job(connected.folder / "t")
    trial = connected.run(job)
    ((launched, python, _, guard),) = calls.launched
    assert (launched, python, guard.silence_s) == (job, Path("/fake/python"), 7.0)
    assert not guard.stopped(), "an interrupt ends the launcher itself"
    assert calls.indexed == [(connected.folder.name, trial)]
    assert calls.finished_trials == [trial]
    assert calls.events == [{"event": "hello"}]


@pytest.mark.parametrize("kind", [name for name, kind in KINDS.items() if not kind.shown])
def test_a_process_outside_the_rounds_is_neither_shown_nor_indexed_and_can_be_stopped(
    kind: str, connected: Session, calls: Calls
) -> None:
    job = replace(recorded_trials.job(connected.folder / "t"), kind=kind)
    assert connected.run(job).job == job
    ((launched, python, _, guard),) = calls.launched
    assert (launched, python, guard.silence_s) == (job, Path("/fake/python"), 7.0)
    assert not guard.stopped()
    connected.stop.set()
    assert guard.stopped()
    assert (calls.indexed, calls.finished_trials, calls.events) == ([], [], [])


@pytest.mark.parametrize("kind", ["probe", "search"])
def test_a_process_that_tries_something_is_shown_and_not_indexed(kind: str, connected: Session, calls: Calls) -> None:
    connected.run(replace(recorded_trials.job(connected.folder / "t"), kind=kind))
    assert (calls.indexed, calls.finished_trials, calls.events) == ([], [], [{"event": "hello"}])
    assert connected.durations.seconds.keys() == {"processes"}


def test_a_process_that_takes_turns_is_shown_and_kept_by_who_started_it(connected: Session, calls: Calls) -> None:
    told: list[dict[str, Any]] = []
    connected.run(recorded_trials.job(connected.folder / "t"), told.append)
    assert (calls.indexed, calls.events, told) == ([], [{"event": "hello"}], [{"event": "hello"}])


def test_a_failed_process_is_indexed_and_the_run_continues(connected: Session, calls: Calls) -> None:
    calls.error = ("crash", "It broke.")
    trial = connected.run(recorded_trials.job(connected.folder / "t"))
    assert calls.indexed == [(connected.folder.name, trial)]


def test_a_process_that_found_the_disk_full_ends_the_run(connected: Session, calls: Calls) -> None:
    calls.error = ("disk-full", "The disk is full.")
    with pytest.raises(UserError, match=r"^The disk is full\.$"):
        connected.run(recorded_trials.job(connected.folder / "t"))
    assert not calls.indexed


@pytest.mark.parametrize("kind", KINDS)
def test_no_process_starts_on_a_disk_with_less_than_200_mib(
    kind: str, connected: Session, calls: Calls, monkeypatch: pytest.MonkeyPatch
) -> None:
    free = 200 * 2**20
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=free))
    connected.check_disk()
    free -= 2**20
    with pytest.raises(UserError) as raised:
        connected.run(replace(recorded_trials.job(connected.folder / "t"), kind=kind))
    assert f"{connected.folder} has 199 MiB left. Free at least 200 MiB, then" in str(raised.value)
    assert str(raised.value).endswith(
        f"steelyard run --resume {connected.folder.name} --runs {connected.folder.parent}"
    )
    assert not calls.launched


def test_at_most_as_many_items_are_processed_at_once_as_asked(session: Session) -> None:
    running, most = threading.Semaphore(2), 0

    def work(_: int) -> None:
        nonlocal most
        assert running.acquire(blocking=False), "a third item was started beside two others"
        time.sleep(0.01)
        running.release()
        most += 1

    session.side_by_side(work, range(8), 2)
    assert most == 8


def test_the_inputs_of_a_case_are_those_of_its_recipe(tmp_path: Path) -> None:
    run = scripted_session.session(tmp_path / "run", lambda *_: 10.0)
    (first, second) = run.plan.variants
    assert run.inputs_of(first.case) is run.inputs[recipe(first.case)]
    assert run.inputs_of(first.case) is run.inputs_of(second.case)


def test_what_needs_more_room_than_the_disk_has_is_refused_before_it_begins(connected: Session) -> None:
    gb, spare = 10**9, 200 * 2**20
    connected.check_room("The certificates of a:b", 3 * gb, 3 * gb + spare)
    with pytest.raises(ResumableError) as raised:
        connected.check_room("The certificates of a:b", 3 * gb, 3 * gb + spare - 1)
    assert str(raised.value) == (
        f"The certificates of a:b save up to 3.0 GB, and the disk that holds {connected.folder} has 3.2 GB left. Free some, then "
        f"continue with: steelyard run --resume {connected.folder.name} --runs {connected.folder.parent}"
    )
