"""Shares, counts and times of a profiled step, from its classes."""

from __future__ import annotations

from dataclasses import replace

import pytest

from steelyard.profiles.breakdown import Breakdown
from steelyard.profiles.quantities import QUANTITIES

STEP = Breakdown(
    classes={
        "matrix product": 40e6,
        "copies and layout": 8e6,
        "unattributed": 2e6,
        "dispatch": 20e6,
        "input pipeline": 5e6,
        "host gap": 25e6,
    },
    operations=(),
    step_ns=100e6,
    covered=0.7,
    parallelism=2.4,
    dispatches=500,
    slow_down=1.0,
    cpu_slow_down=1.0,
)


def values(found: Breakdown) -> dict[str, float]:
    return {name: each.read(found) for name, each in QUANTITIES.items()}


def test_every_number_is_read_from_the_classes() -> None:
    assert values(STEP) == pytest.approx(
        {
            "share in operations": 50,
            "summed share in operations": 120,
            "share of copies": 8,
            "share of bookkeeping": 20,
            "share of waiting for data": 5,
            "host gap": 25,
            "operations per step": 500,
            "operations per busy second": 10_000,
            "time in operations": 50e6,
            "rest of the step": 50e6,
        }
    )


def test_a_step_without_operations_has_no_rate() -> None:
    found = values(replace(STEP, classes={"host gap": 100e6}, dispatches=0.0))
    assert (found["share in operations"], found["operations per busy second"], found["rest of the step"]) == (
        0,
        0,
        100e6,
    )
