"""How each quantity is read from a trial, and how quantities are found by name."""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import pytest
import recorded_trials

from steelyard.errors import UserError
from steelyard.results import trials
from steelyard.results.quantities import (
    FIRST_STEP,
    LATENCIES,
    PEAK_MEMORY,
    QUANTITIES,
    STEP_TIME,
    THROUGHPUT,
    TIME_TO_FIRST_STEP,
    in_task,
    quantity,
)


@pytest.fixture
def trial() -> trials.Trial:
    """A trial of 16 samples per step and 10 ms per counted step, with a first step."""
    found = trials.replay(Path("/t"), recorded_trials.job(Path("/t")), recorded_trials.events())
    return replace(found, phases_ns={"import": 5, "first-step": 7_000}, first_step_since_spawn_ns=9_000)


def test_each_quantity_is_read_in_its_unit(trial: trials.Trial) -> None:
    assert STEP_TIME.read(trial, "cached") == 1e7
    assert THROUGHPUT.read(trial, "cached") == 1600
    assert FIRST_STEP.read(trial, "cached") == 7_000
    assert TIME_TO_FIRST_STEP.read(trial, "cached") == 9_000
    assert PEAK_MEMORY.read(trial, "cached") == 1000


def test_an_input_that_was_not_measured_has_no_time_and_no_throughput(trial: trials.Trial) -> None:
    assert STEP_TIME.read(trial, "pipeline") is None
    assert THROUGHPUT.read(trial, "pipeline") is None


def test_the_memory_of_a_device_counts_where_there_is_one(trial: trials.Trial) -> None:
    assert PEAK_MEMORY.read(replace(trial, peak_device_bytes=50), "cached") == 50
    assert PEAK_MEMORY.read(replace(trial, peak_device_bytes=0), "cached") == 1000


def test_rounds_without_a_value_are_left_out(trial: trials.Trial) -> None:
    without = replace(trial, phases_ns={})
    assert FIRST_STEP.of_rounds({1: trial, 2: without, 4: trial}, "cached") == {1: 7_000, 4: 7_000}


def test_the_cost_of_a_throughput_is_its_inverse() -> None:
    assert THROUGHPUT.cost(1600.0) == 1 / 1600
    assert STEP_TIME.cost(1e7) == 1e7


def test_a_quantity_is_found_by_name_and_the_nearest_is_suggested() -> None:
    for known in (STEP_TIME, THROUGHPUT, FIRST_STEP, TIME_TO_FIRST_STEP, PEAK_MEMORY):
        assert quantity(known.name) is known
    with pytest.raises(UserError, match=r"There is no quantity 'peak-memory'\. Did you mean 'peak memory'\?"):
        quantity("peak-memory")


@pytest.mark.parametrize(("count", "known"), [(19, (50,)), (20, (50, 95)), (99, (50, 95)), (100, (50, 95, 99))])
def test_a_latency_needs_enough_batches_that_were_timed_alone(
    monkeypatch: pytest.MonkeyPatch, trial: trials.Trial, count: int, known: tuple[int, ...]
) -> None:
    monkeypatch.setattr(trials.Trial, "latencies_ns", np.linspace(1e6, 2e6, count))
    found = {each.name: each.read(trial, "cached") for each in LATENCIES}
    for percentile in (50, 95, 99):
        expected = 1e6 * (1 + percentile / 100) if percentile in known else None
        assert found[f"latency p{percentile}"] == (pytest.approx(expected) if expected else None)


def test_only_an_inference_has_latencies(trial: trials.Trial) -> None:
    assert [each.read(trial, "cached") for each in LATENCIES] == [None, None, None]
    assert {each.tasks for each in LATENCIES} == {("inference",)}


@pytest.mark.parametrize("name", QUANTITIES)
def test_the_words_of_an_inference_have_no_steps(name: str) -> None:
    found = in_task(QUANTITIES[name], "inference")
    assert found.read is QUANTITIES[name].read
    assert "step" not in " ".join([found.label, found.best_value, *asdict(found.wording).values()])
