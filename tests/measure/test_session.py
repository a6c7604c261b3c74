"""The session: parallel work and entries about rounds."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, cast

import pytest

from steelyard.measure.session import Session

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def session(tmp_path: Path) -> Session:
    """A session with a folder and nothing else."""
    missing = cast("Any", None)
    return Session(missing, tmp_path, {}, {}, missing, missing)


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


def test_entries_about_rounds_are_read_in_order(session: Session) -> None:
    assert session.noted_rounds() == []
    session.note_round(round=1, kept=False)
    session.note_round(round=1, kept=True)
    assert session.noted_rounds() == [{"round": 1, "kept": False}, {"round": 1, "kept": True}]


def test_an_incomplete_entry_is_ignored_and_does_not_damage_the_next(session: Session) -> None:
    session.note_round(round=1)
    with (session.folder / "rounds.jsonl").open("a") as file:
        file.write('{"round": 2, "quiet": {"steal": 0.0}')
    assert session.noted_rounds() == [{"round": 1}]
    session.note_round(round=2)
    assert session.noted_rounds() == [{"round": 1}, {"round": 2}]
