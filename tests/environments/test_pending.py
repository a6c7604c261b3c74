"""Environments that are used while others are still being made."""

from __future__ import annotations

import sys
from pathlib import Path
from threading import Event, Thread

import pytest

from steelyard.environments import Environment, Failure
from steelyard.environments import pending as module
from steelyard.environments.pending import Waits, already, start
from steelyard.errors import UserError


def environment(name: str) -> Environment:
    return Environment(name, name, "1.0", Path(sys.executable), "3.11.7", {})


def test_what_is_ready_can_be_used_while_another_is_made() -> None:
    late = Event()

    def slow() -> Environment:
        assert late.wait(30)
        return environment("slow")

    arriving = start({"quick": lambda: environment("quick"), "slow": slow})
    assert arriving.next_ready({"quick", "slow"}) == {"quick"}
    assert arriving["quick"].name == "quick"
    assert "slow" in arriving, "it is expected, and asking does not wait"
    Thread(target=late.set).start()
    assert arriving["slow"].name == "slow"
    assert set(arriving) == {"quick", "slow"}
    assert arriving.failures() == {}


def test_what_failed_is_named_and_is_not_there() -> None:
    arriving = start({"good": lambda: environment("good"), "bad": lambda: Failure("bad", "No network.")})
    assert arriving.failures() == {"bad": "No network."}
    assert list(arriving) == ["good"]
    assert "bad" not in arriving
    assert arriving.next_ready({"bad"}) == {"bad"}, "it has ended, so nobody waits for it"
    with pytest.raises(KeyError):
        arriving["bad"]


def test_where_none_could_be_made_all_reasons_are_given() -> None:
    arriving = start({name: lambda name=name: Failure(name, f"{name} failed.") for name in ("a", "b")})  # type: ignore[misc]
    with pytest.raises(UserError, match=r"^No environment could be created: a failed. b failed.$"):
        arriving.failures()


def test_an_unexpected_error_reaches_whoever_needs_the_environment() -> None:
    def broken() -> Environment:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        start({"broken": broken}).failures()


def test_only_the_time_in_which_nobody_works_is_spent_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr(module.time, "monotonic", lambda: now[0])
    found, busy, free = Waits(), Event(), Event()

    def other() -> None:
        with found.work():
            busy.set()
            assert free.wait(30)

    thread = Thread(target=other)
    with found.work():
        now[0] += 1
        with found.wait():
            now[0] += 10
            assert found.seconds == 10, "also while the waiting goes on"
        now[0] += 100
        thread.start()
        assert busy.wait(30)
        with found.wait():
            now[0] += 1000
            free.set()
            thread.join(30)
            now[0] += 10000
        with found.wait(), found.wait():
            now[0] += 100000
    assert found.seconds == 110010


def test_what_is_ready_is_not_waited_for() -> None:
    arriving = already({"a": environment("a")})
    arriving.next_ready({"a"})
    arriving["a"]
    arriving.failures()
    assert arriving.waits.seconds == 0


def test_environments_that_exist_can_be_added_to() -> None:
    arriving = already({"a": environment("a")})
    arriving["b"] = environment("b")
    assert (len(arriving), arriving["b"].name) == (2, "b")
    del arriving["a"]
    assert list(arriving) == ["b"]
