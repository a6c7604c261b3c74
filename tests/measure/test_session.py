"""What the stages of a run share: parallel work, and the notes on every round."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, cast

import pytest

from steelyard.measure.session import Session

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def session(tmp_path: Path) -> Session:
    """A session of which only the folder is looked at."""
    missing = cast("Any", None)
    return Session(missing, tmp_path, {}, {}, missing, missing)


def test_things_are_done_side_by_side_and_all_of_them(session: Session) -> None:
    done: list[int] = []
    session.side_by_side(done.append, range(10), 3)
    assert sorted(done) == list(range(10))
    assert not session.stop.is_set()


def test_an_interrupt_stops_what_runs_and_starts_nothing_else(session: Session) -> None:
    begun: list[int] = []
    told: list[bool] = []
    both = threading.Barrier(2, timeout=10)

    def work(number: int) -> None:
        begun.append(number)
        if number < 2:
            both.wait()
        if number == 0:
            raise KeyboardInterrupt
        told.append(session.stop.wait(5))

    with pytest.raises(KeyboardInterrupt):
        session.side_by_side(work, range(10), 2)
    assert told
    assert all(told)
    assert sorted(begun) in ([0, 1], [0, 1, 2])


def test_notes_on_rounds_are_read_back_in_order(session: Session) -> None:
    assert session.noted_rounds() == []
    session.note_round(round=1, kept=False)
    session.note_round(round=1, kept=True)
    assert session.noted_rounds() == [{"round": 1, "kept": False}, {"round": 1, "kept": True}]


def test_a_note_that_a_kill_cut_short_is_left_out_and_spoils_no_later_one(session: Session) -> None:
    session.note_round(round=1)
    with (session.folder / "rounds.jsonl").open("a") as file:
        file.write('{"round": 2, "quiet": {"steal": 0.0}')
    assert session.noted_rounds() == [{"round": 1}]
    session.note_round(round=2)
    assert session.noted_rounds() == [{"round": 1}, {"round": 2}]
