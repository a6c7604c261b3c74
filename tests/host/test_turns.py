"""One run at a time on a machine: the second waits, or says that it does not."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from typing import TYPE_CHECKING

import pytest

from steelyard.host import turns

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

HOLD = """
import sys, time
from steelyard.host import turns
with turns.turn(print) as alone:
    print("held", alone, flush=True)
    time.sleep(60)
"""


@pytest.fixture(autouse=True)
def _cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STEELYARD_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(turns, "POLL_S", 0.02)


@pytest.fixture
def other() -> Iterator[subprocess.Popen[str]]:
    """Another process that holds the lock."""
    with subprocess.Popen([sys.executable, "-c", HOLD], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held True\n"
        yield process
        process.kill()


def test_alone_on_the_machine_nothing_is_said(tmp_path: Path) -> None:
    said: list[str] = []
    for wait in (True, False):
        with turns.turn(said.append, wait) as alone:
            assert alone
    assert said == []
    assert (tmp_path / "cache").stat().st_mode & 0o777 == 0o700


def test_the_second_run_says_that_it_waits_and_starts_when_the_first_is_killed(other: subprocess.Popen[str]) -> None:
    said: list[str] = []
    started: list[bool] = []

    def run() -> None:
        with turns.turn(said.append) as alone:
            started.append(alone)

    thread = threading.Thread(target=run)
    thread.start()
    time.sleep(0.3)
    assert (said, started) == ([turns.WAITING], [])
    other.kill()
    thread.join(30)
    assert started == [True]


def test_without_waiting_the_second_run_continues_with_a_warning(other: subprocess.Popen[str]) -> None:
    said: list[str] = []
    with turns.turn(said.append, wait=False) as alone:
        assert not alone
    assert said == [turns.BESIDE]


def test_an_error_during_a_run_frees_the_machine() -> None:
    with pytest.raises(ZeroDivisionError), turns.turn(lambda _: None):
        raise ZeroDivisionError
    with turns.turn(lambda _: None, wait=False) as alone:
        assert alone


def test_the_holder_of_a_turn_is_named_while_it_is_held(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STEELYARD_CACHE", str(tmp_path))
    assert turns.holder() == ""
    with turns.turn(lambda _: None, name="20260101-study"):
        assert turns.holder() == "20260101-study"
        turns._name_path().unlink()
        assert turns.holder() == "another run"
    with turns.turn(lambda _: None):
        assert turns.holder() == "another run"
    assert turns.holder() == ""
