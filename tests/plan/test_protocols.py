"""Protocols by name: how long a process warms up, what it counts, and what is refused."""

from __future__ import annotations

import re

import pytest

from steelyard.errors import UserError
from steelyard.plan.protocols import protocol


@pytest.mark.parametrize(
    ("name", "warmup", "counted", "aggregate"),
    [
        ("second-epoch", ("epochs", 1), ("epochs", 1), "the second epoch"),
        ("epochs:20-first", ("epochs", 1), ("epochs", 19), "mean of epochs 2 to 20"),
        ("epochs:10", ("epochs", 0), ("epochs", 10), "mean of epochs 1 to 10"),
        ("epochs:1", ("epochs", 0), ("epochs", 1), "mean of epochs 1 to 1"),
        ("total:125", ("epochs", 0), ("epochs", 125), "the whole training of 125 epochs"),
        ("fixed:10+200", ("steps", 10), ("steps", 200), "mean step time of the counted blocks"),
        ("fixed:0+1:pipeline", ("steps", 0), ("steps", 1), "mean step time of the counted blocks"),
    ],
)
def test_a_protocol_says_what_is_counted(
    name: str, warmup: tuple[str, int], counted: tuple[str, int], aggregate: str
) -> None:
    found = protocol(name)
    lengths = found.schedule.warmup, found.schedule.counted
    assert [(each.unit, each.count) for each in lengths] == [warmup, counted]
    assert (found.name, found.aggregate) == (name, aggregate)
    assert (found.rounds_min, found.rounds_max, found.sequential) == (1, 1, False)


def test_fixed_steps_are_counted_on_the_input_that_is_named() -> None:
    assert protocol("fixed:10+200").schedule.inputs == ("cached",)
    assert protocol("fixed:10+200:pipeline").schedule.inputs == ("pipeline",)
    assert protocol("total:2").schedule.inputs == protocol("epochs:2").schedule.inputs == ("pipeline",)


def test_trainings_are_evaluated_after_each_epoch_but_the_second_epoch_alone_is_not() -> None:
    assert [protocol(name).schedule.evaluate_epochs for name in ("epochs:2", "epochs:2-first", "total:2")] == [True] * 3
    assert not protocol("second-epoch").schedule.evaluate_epochs


def test_each_protocol_of_epochs_has_its_own_summary() -> None:
    names = ("epochs:3", "epochs:3-first", "total:3", "second-epoch", "fixed:1+1", "fixed:1+1:pipeline")
    assert len({protocol(name).summary for name in names}) == len(names)


@pytest.mark.parametrize(
    "name",
    [
        "epochs:0",
        "epochs:1-first",
        "total:0",
        "total:1-first",
        "epochs:",
        "epochs:9999999",
        "fixed:10+0:pipeline",
        "fixed:1+1:cached",
    ],
)
def test_an_impossible_protocol_is_refused(name: str) -> None:
    with pytest.raises(UserError, match=re.escape(f"There is no protocol '{name}'")):
        protocol(name)


@pytest.mark.parametrize(
    ("rounds", "said"),
    [
        ("", "(3 to 12 rounds)"),
        ("1", "(1 round)"),
        ("5", "(5 rounds)"),
        ("2-4", "(2 to 4 rounds)"),
    ],
)
@pytest.mark.parametrize("name", ["sequential", "sequential:pipeline"])
def test_the_text_of_a_protocol_has_the_rounds_of_this_run(name: str, rounds: str, said: str) -> None:
    found = protocol(name, rounds)
    assert said in found.text
    assert found.summary == protocol(name).summary, "rounds of earlier runs can still be used"
