"""What a trial's event and binary files say about its steps: asynchronous calls, two inputs, phases, memory, scores."""

from __future__ import annotations

from array import array
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import recorded_trials

from steelyard.results import trials
from steelyard.results.events import Block, PhaseMemory
from steelyard.results.trials import Evaluation
from steelyard_worker import protocol, tensors

START_NS = 5_000_000


def block(source: str, phase: str, steps: int, start_ns: int, elapsed_ns: int, first_step: int) -> dict[str, Any]:
    return {
        "event": "samples",
        "input": source,
        "phase": phase,
        "steps": steps,
        "start_ns": start_ns,
        "elapsed_ns": elapsed_ns,
        "first_step": first_step,
    }


def recorded(folder: Path, events: list[dict[str, Any]], stamps: list[int] = (), **job: Any) -> trials.Trial:  # type: ignore[assignment]
    """Write a trial with these events and these returns of calls, and read it; the loss of step n is n + 1."""
    lines = [{"v": protocol.VERSION, "t_ns": 0, **event} for event in events]
    recorded_trials.write(folder, recorded_trials.job(folder, **job), lines)
    (folder / protocol.SAMPLES).write_bytes(array("q", stamps).tobytes())
    (folder / protocol.LOSSES).write_bytes(array("f", range(1, len(stamps) + 1)).tobytes())
    return trials.read(folder)


def test_the_time_of_a_synchronous_step_is_that_between_two_returns(tmp_path: Path) -> None:
    # The last call returned 98 ns after the start of a block of 100 ns: the rest belongs to the last step.
    stamps = [START_NS + offset for offset in (10, 40, 60, 98)]
    trial = recorded(tmp_path / "t", [block("cached", "counted", 4, START_NS, 100, 0)], stamps)
    assert trial.steps_ns("cached").tolist() == [10, 30, 20, 40]
    assert trial.location_ns("cached") == 25
    assert trial.host_share("cached") == pytest.approx(0.98)


def test_the_steps_of_asynchronous_calls_get_the_mean_of_their_block(tmp_path: Path) -> None:
    stamps = [START_NS + offset for offset in (1, 2, 3, 96)]
    trial = recorded(tmp_path / "t", [block("cached", "counted", 4, START_NS, 100, 0)], stamps)
    assert trial.steps_ns("cached").tolist() == [25, 25, 25, 25]
    assert trial.host_share("cached") == pytest.approx(0.96)


def test_calls_that_return_at_97_percent_of_their_block_are_synchronous(tmp_path: Path) -> None:
    trial = recorded(tmp_path / "t", [block("cached", "counted", 2, 0, 100, 0)], [50, 97])
    assert trial.steps_ns("cached").tolist() == [50, 50]
    trial = recorded(tmp_path / "u", [block("cached", "counted", 2, 0, 100, 0)], [40, 97])
    assert trial.steps_ns("cached").tolist() == [40, 60]


def test_the_two_inputs_are_read_separately(tmp_path: Path) -> None:
    events = [
        block("pipeline", "warm-up", 1, 0, 7, 0),
        block("pipeline", "counted", 2, 100, 40, 1),
        block("cached", "counted", 1, 200, 50, 3),
        block("pipeline", "counted", 1, 300, 10, 4),
    ]
    trial = recorded(tmp_path / "t", events, [7, 120, 140, 250, 310])
    assert trial.steps_ns("pipeline").tolist() == [20, 20, 10]
    assert trial.steps_ns("pipeline", ("warm-up",)).tolist() == [7]
    assert trial.steps_ns("cached").tolist() == [50]
    assert trial.losses("pipeline").tolist() == [1, 2, 3, 5]
    assert trial.losses("cached").tolist() == [4]
    assert trial.losses("cached").dtype == np.float32
    assert trial.location_ns("pipeline") == pytest.approx(50 / 3)
    assert trial.host_share("pipeline") == pytest.approx(1.0)
    assert [each.first_step for each in trial.counted("pipeline")] == [1, 4]


def test_an_input_that_was_not_measured_is_empty(tmp_path: Path) -> None:
    trial = recorded(tmp_path / "t", [block("cached", "counted", 1, 0, 10, 0)], [10])
    assert trial.steps_ns("pipeline").tolist() == []
    assert trial.losses("pipeline").tolist() == []
    assert trial.losses("pipeline").dtype == np.float32
    assert trial.host_share("pipeline") is None


def test_the_counted_span_goes_from_the_first_start_to_the_last_end(tmp_path: Path) -> None:
    events = [
        block("pipeline", "warm-up", 1, 0, 7, 0),
        block("pipeline", "counted", 1, 100, 40, 1),
        block("cached", "counted", 1, 200, 50, 2),
    ]
    assert recorded(tmp_path / "t", events, [7, 140, 250]).counted_span_ns == (100, 250)
    assert recorded(tmp_path / "u", events[:1], [7]).counted_span_ns == (0, 0)


def test_a_trial_has_everything_that_its_events_say(tmp_path: Path) -> None:
    events = [
        {"event": "hello", "method": 2},
        {"event": "phase", "name": "import", "elapsed_ns": 5},
        {"event": "applied", "applied": {"mode": "scripted", "threads": 2}, "libraries": {"numpy": "2"}},
        {"event": "phase", "name": "first-step", "elapsed_ns": 8, "since_spawn_ns": 30},
        {"event": "warning", "name": "spill", "message": "Slow."},
        {
            "event": "memory",
            "peak_resident_bytes": 10,
            "peak_device_bytes": 20,
            "phases": [{"name": "build", "resident_bytes": 9, "device_bytes": None}],
        },
        {"event": "done"},
    ]
    trial = recorded(tmp_path / "t", events)
    assert (trial.folder, trial.job.folder) == (tmp_path / "t", str(tmp_path / "t"))
    assert (trial.method, trial.done, trial.error) == (2, True, None)
    assert (trial.applied, trial.libraries) == ({"mode": "scripted", "threads": 2}, {"numpy": "2"})
    assert (trial.phases_ns, trial.first_step_since_spawn_ns) == ({"import": 5, "first-step": 8}, 30)
    assert trial.warnings == ({"name": "spill", "message": "Slow."},)
    assert (trial.peak_resident_bytes, trial.peak_device_bytes) == (10, 20)
    assert trial.memory == {"build": PhaseMemory("build", 9, None)}
    assert (trial.blocks, trial.evaluation) == ((), None)


def test_the_error_of_a_process_is_its_kind_and_message(tmp_path: Path) -> None:
    trial = recorded(tmp_path / "t", [{"event": "error", "kind": "nan-loss", "message": "The loss is NaN."}])
    assert (trial.error, trial.done) == (("nan-loss", "The loss is NaN."), False)


def test_the_block_of_an_event_keeps_all_its_fields(tmp_path: Path) -> None:
    trial = recorded(tmp_path / "t", [block("cached", "warm-up", 3, 11, 22, 33)])
    assert trial.blocks == (Block("cached", "warm-up", 3, 11, 22, 33),)


def test_predictions_are_scored_by_the_metric_of_the_job(tmp_path: Path) -> None:
    folder = tmp_path / "t"
    predictions = {"truth": np.array([1, 2, 3, 4]), "predicted": np.array([1, 2, 0, 4])}
    tensors.write(folder / protocol.PREDICTIONS, predictions)
    (folder / protocol.PREDICTIONS).rename(tmp_path / "kept")
    folder.rmdir()
    event = {"event": "evaluated", "steps": 40, "samples": 4, "elapsed_ns": 9}
    lines = [{"v": protocol.VERSION, "t_ns": 0, **event}]
    recorded_trials.write(folder, recorded_trials.job(folder, metric="accuracy"), lines)
    (tmp_path / "kept").rename(folder / protocol.PREDICTIONS)
    assert trials.read(folder).evaluation == Evaluation(40, {"accuracy": 0.75}, 9)
    lines[0]["samples"] = 0
    assert trials.replay(folder, recorded_trials.job(folder), lines).evaluation == Evaluation(40, {}, 9)
