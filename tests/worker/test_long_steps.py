"""A process of a network whose steps take seconds: how many steps it warms up, and how many it counts."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scripted_training import points, trained

from steelyard.results.trials import Trial
from steelyard_worker import protocol, tensors


def blocks(trial: Trial) -> list[tuple[str, str, int]]:
    """Return the input, phase and steps of every block."""
    read = protocol.read_events(trial.folder / protocol.EVENTS)
    return [(each["input"], each["phase"], each["steps"]) for each in read if each["event"] == "samples"]


def measured(folder: Path, step_us: int, *inputs: str) -> list[tuple[str, str, int]]:
    """Measure by the sequential protocol without turns or an evaluation; the process starts in no time."""
    batch = {"point": np.zeros((16, 8), np.float32), "label": np.zeros(16, np.int32)}
    tensors.write(folder / "synthetic", batch)
    data = replace(points(folder / "data"), synthetic=str(folder / "synthetic"))
    schedule = {"inputs": inputs, "evaluate": False, "turns": 0, "noise_ratio": 0.0}
    return blocks(trained("sequential", folder / "trial", data, step_us=step_us, **schedule))


def test_steps_of_three_seconds_warm_up_four_times_and_are_counted_four_times(tmp_path: Path) -> None:
    found = measured(tmp_path, 3_000_000, "pipeline")
    assert found == [("pipeline", phase, 1) for phase in ("first", *["warm-up"] * 4, *["counted"] * 4)]


def test_the_second_input_needs_as_few(tmp_path: Path) -> None:
    found = measured(tmp_path, 3_000_000, "pipeline", "cached")
    assert found[9:] == [("cached", "warm-up", 4), *[("cached", "counted", 1)] * 4]


def test_the_warm_up_is_part_of_the_start_that_decides_how_many_steps_are_counted(tmp_path: Path) -> None:
    schedule = {"inputs": ("pipeline",), "evaluate": False, "turns": 0, "noise_ratio": 2.0}
    data = points(tmp_path / "data")
    found = blocks(trained("sequential", tmp_path / "trial", data, step_us=3_000_000, spawned_ns=0, **schedule))
    # The first step and four of warm-up are a start of 15 s: 2 * sqrt(15 / 3) steps.
    assert sum(steps for _, phase, steps in found if phase == "counted") == 5


def test_steps_that_are_neither_long_nor_short_are_in_blocks_that_last_a_second(tmp_path: Path) -> None:
    found = measured(tmp_path, 400_000, "pipeline", "cached")
    assert [steps for source, phase, steps in found if (source, phase) == ("pipeline", "warm-up")] == [1, 3, 3, 3, 3]
    assert {steps for source, phase, steps in found if phase == "counted"} == {3}
    assert ("cached", "warm-up", 10) in found


@pytest.mark.parametrize("cap", [{"warmup_cap_s": 2.5}, {"warmup_cap_steps": 1}])
def test_a_warm_up_that_is_cut_short_has_a_block_of_the_right_length(tmp_path: Path, cap: dict[str, float]) -> None:
    # The step after the first is the only one when the limit is reached, and its length alone is no block of five.
    schedule = {"inputs": ("pipeline",), "evaluate": False, "turns": 0, **cap}
    found = blocks(trained("sequential", tmp_path / "trial", points(tmp_path / "data"), step_us=20_000, **schedule))
    assert found[:3] == [("pipeline", "first", 1), ("pipeline", "warm-up", 1), ("pipeline", "warm-up", 5)]
    assert max(steps for _, phase, steps in found if phase == "counted") <= 25
