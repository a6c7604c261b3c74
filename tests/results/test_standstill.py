"""Workers that did not run while their steps were counted."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import recorded_trials

from steelyard.results.events import Block
from steelyard.results.standstill import standstill
from steelyard.results.trials import Trial
from steelyard_worker.case import Settings

WORKER = """
import itertools, json, os, signal, time
from steelyard_worker.timing import time_block

class Trainer:
    def step(self, number):
        if number == STOPPED:
            os.kill(os.getpid(), signal.SIGSTOP)
        return sum(range(150_000))
    def synchronise(self):
        pass

stopped_ns = 0

def clock():
    return time.process_time_ns() + stopped_ns

def go_on(*_):
    # In proportion to what was computed, so that a slow machine does not make the stop look short.
    global stopped_ns
    stopped_ns += 20 * time.process_time_ns()

signal.signal(signal.SIGCONT, go_on)
feed = itertools.count()
time_block(Trainer(), feed, 5, clock)
for _ in range(8):
    block = time_block(Trainer(), feed, 30, clock)
    print(json.dumps([block.start_ns, block.elapsed_ns, block.cpu_ns]), flush=True)
"""


def trial(blocks: list[Block], device: str = "cpu") -> Trial:
    job = recorded_trials.job(Path("/trial"))
    case = replace(job.case, settings=Settings("scripted", device=device))
    return Trial(Path("/trial"), replace(job, case=case), blocks=tuple(blocks), done=True)


def block(elapsed_s: float, cpu_s: float, steps: int = 10) -> Block:
    return Block("pipeline", "counted", steps, 0, round(elapsed_s * 1e9), 0, round(cpu_s * 1e9))


USUAL = [block(0.50, 0.98), block(0.52, 1.01), block(0.49, 0.97)]


def test_blocks_that_computed_all_the_time_are_no_standstill() -> None:
    assert standstill(trial(USUAL)) is None
    assert standstill(trial([])) is None


def test_a_first_step_that_compiles_on_one_core_is_no_standstill() -> None:
    first = replace(block(4.0, 4.1, steps=1), epoch=1)
    later = [replace(each, epoch=1, first_step=number) for number, each in enumerate(USUAL, 1)]
    assert standstill(trial([first, *later])) is None
    assert standstill(trial([replace(first, first_step=9), *later])) is not None


def test_a_stop_is_found_by_cpu_time_that_stands_still() -> None:
    found = standstill(trial([*USUAL, block(5.5, 0.98)]))
    assert found is not None
    assert found.reason == "a worker stood still for 5.0 s of 7.0 s that were counted"
    assert found.severity == pytest.approx(5.0 / (0.03 * 7.0), rel=0.01)


def test_starvation_is_found_as_well() -> None:
    # Another program took a third of the time.
    found = standstill(trial([*USUAL, block(0.75, 0.98)]))
    assert found is not None and "stood still" in found.reason


def test_slow_memory_or_a_slow_clock_is_no_standstill() -> None:
    # The block took twice as long, and computed all that time.
    assert standstill(trial([*USUAL, block(1.0, 1.96)])) is None


def test_blocks_of_other_sizes_are_compared_by_step() -> None:
    assert standstill(trial([*USUAL, block(2.5, 4.9, steps=50)])) is None


def test_where_another_device_computes_nothing_is_claimed() -> None:
    assert standstill(trial([*USUAL, block(5.5, 0.98)], device="cuda")) is None


def test_without_recorded_cpu_times_nothing_is_claimed() -> None:
    assert standstill(trial([replace(each, cpu_ns=0) for each in (*USUAL, block(5.5, 1.0))])) is None


def blocks_of_a_process(stopped_at: int) -> list[Block]:
    """Return the blocks of a real process that is stopped at a step; at no step if that is negative.

    Its clock goes on by what it computes and by the time that it was stopped, and not while other programs compute.
    """
    with subprocess.Popen(
        [sys.executable, "-c", f"STOPPED = {stopped_at}{WORKER}"], stdout=subprocess.PIPE, text=True
    ) as process:
        if stopped_at >= 0:
            _, status = os.waitpid(process.pid, os.WUNTRACED)
            assert os.WIFSTOPPED(status)
            os.kill(process.pid, signal.SIGCONT)
        lines = process.communicate()[0].splitlines()
    return [Block("pipeline", "counted", 30, start, elapsed, 0, cpu) for start, elapsed, cpu in map(json.loads, lines)]


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no signal that stops a process")
def test_a_process_that_is_really_stopped_inside_a_block_is_noticed() -> None:
    found = standstill(trial(blocks_of_a_process(stopped_at=125)))
    assert found is not None
    assert found.reason.startswith("a worker stood still for ")


def test_the_same_process_without_a_stop_is_not() -> None:
    assert standstill(trial(blocks_of_a_process(stopped_at=-1))) is None
