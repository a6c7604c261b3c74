"""What a job costs once and for each step, from what a process recorded."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from recorded_trials import case, job

from steelyard.results.events import Block
from steelyard.results.job_times import job_time
from steelyard.results.trials import Trial
from steelyard.statistics.break_even import JobTime
from steelyard_worker.case import INFERENCE

if TYPE_CHECKING:
    from pathlib import Path

PHASES = {"import": 1000, "read-back": 7000, "build": 200, "first-step": 500}


def trial(folder: Path, *blocks: Block) -> Trial:
    """Return a trial with these blocks; import and build take 1,200 ns."""
    return Trial(folder, job(folder), phases_ns=PHASES, blocks=blocks, done=True)


def block(phase: str, steps: int, elapsed_ns: int, source: str = "pipeline", epoch: int = 0) -> Block:
    return Block(source, phase, steps, 0, elapsed_ns, 0, epoch=epoch)


def test_all_that_early_steps_take_longer_belongs_to_the_start(tmp_path: Path) -> None:
    found = job_time(trial(tmp_path, block("first", 1, 500), block("warm-up", 5, 90), block("counted", 10, 100)))
    assert found == JobTime(1200 + 490 + 40, 10)


def test_only_the_first_input_counts(tmp_path: Path) -> None:
    blocks = (block("first", 1, 500), block("counted", 10, 100))
    more = (block("warm-up", 5, 900, "cached"), block("counted", 5, 20, "cached"))
    assert job_time(trial(tmp_path, *blocks, *more)) == job_time(trial(tmp_path, *blocks))


def test_training_after_the_counted_steps_is_no_part_of_the_start(tmp_path: Path) -> None:
    blocks = (block("first", 1, 500), block("counted", 10, 100))
    assert job_time(trial(tmp_path, *blocks, block("training", 5, 900))) == job_time(trial(tmp_path, *blocks))


@pytest.mark.parametrize("phase", ["counted", "warm-up"])
def test_of_whole_epochs_those_after_the_first_are_steady(tmp_path: Path, phase: str) -> None:
    epochs = (block("first", 1, 500, epoch=1), block(phase, 4, 100, epoch=1))
    later = (block("counted", 5, 50, epoch=2), block("counted", 5, 60, epoch=3))
    assert job_time(trial(tmp_path, *epochs, *later)) == JobTime(1200 + 600 - 5 * 11, 11)
    assert job_time(trial(tmp_path, *epochs)) is None


def test_an_inference_has_a_start_and_batches_too(tmp_path: Path) -> None:
    blocks = (block("first", 1, 500, "cached"), block("counted", 10, 100, "cached"), block("latency", 4, 90, "cached"))
    infers = replace(job(tmp_path), case=case(task=INFERENCE))
    assert job_time(replace(trial(tmp_path, *blocks), job=infers)) == JobTime(1200 + 490, 10)


def test_a_start_is_never_below_zero(tmp_path: Path) -> None:
    found = job_time(trial(tmp_path, block("first", 1, 10), block("warm-up", 200, 200), block("counted", 10, 100)))
    assert found == JobTime(0, 10)


def test_a_process_without_counted_steps_has_no_job_time(tmp_path: Path) -> None:
    assert job_time(trial(tmp_path, block("first", 1, 500), block("warm-up", 5, 90))) is None
    assert job_time(trial(tmp_path)) is None
