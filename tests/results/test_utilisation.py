"""Cores, GPU and energy of counted steps."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from steelyard.results import utilisation
from steelyard.results.events import Block
from steelyard.results.trials import Trial

SECOND = 10**9


def block(seconds: float, **more: Any) -> Block:
    values = {"input": "cached", "phase": "counted", "steps": 10, "start_ns": 0, "first_step": 0, **more}
    return Block(elapsed_ns=round(seconds * SECOND), **values)


def trial(*blocks: Block) -> Trial:
    return Trial(Path(), cast("Any", None), blocks=blocks)


def test_busy_cores_are_the_cpu_time_over_the_elapsed_time_of_counted_blocks() -> None:
    warm = block(1.0, cpu_ns=9 * SECOND, phase="warm-up")
    other = block(1.0, cpu_ns=9 * SECOND, input="pipeline")
    found = trial(warm, other, block(1.0, cpu_ns=2 * SECOND), block(3.0, cpu_ns=4 * SECOND))
    assert utilisation.busy_cores(found, "cached") == pytest.approx(1.5)


@pytest.mark.parametrize("blocks", [(), (block(1.0, cpu_ns=SECOND), block(1.0))])
def test_busy_cores_are_unknown_where_cpu_time_was_not_recorded(blocks: tuple[Block, ...]) -> None:
    assert utilisation.busy_cores(trial(*blocks), "cached") is None


def test_the_use_of_the_gpu_is_the_mean_over_blocks() -> None:
    found = trial(block(1.0, gpu_percent=80), block(1.0, gpu_percent=90), block(1.0))
    assert utilisation.gpu_share(found, "cached") == pytest.approx(0.85)
    assert utilisation.gpu_share(trial(block(1.0)), "cached") is None


def test_energy_per_step_is_by_meter_and_of_counted_blocks_alone() -> None:
    counted = block(0.6, energy_uj={"package-0": 30_000_000, "package-0 dram": 5_000_000})
    warm = replace(counted, phase="warm-up", energy_uj={"package-0": 99})
    found = trial(warm, counted, counted, block(0.1))  # the last one, such as a first step, has no energy
    assert utilisation.joules_per_step(found, "cached") == {"package-0": 3.0, "package-0 dram": 0.5}


@pytest.mark.parametrize(
    ("name", "seconds", "stated"),
    [("package-0", 0.99, False), ("package-0", 1.0, True), ("GPU", 9.9, False), ("GPU", 10.0, True)],
)
def test_energy_is_stated_only_for_enough_updates_of_the_meter(name: str, seconds: float, stated: bool) -> None:
    found = trial(block(seconds, energy_uj={name: 10**6}))
    assert bool(utilisation.joules_per_step(found, "cached")) is stated
    assert utilisation.meters(found) == {name}
