"""Workers that did not compute while their steps were counted, and what of that others did."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from dataclasses import asdict, replace
from pathlib import Path

import pytest
import recorded_trials
from benchmarks import standstill as simulated

from steelyard.host.counters import CpuTimes, Sample
from steelyard.host.noise import Disturbance
from steelyard.measure import watching
from steelyard.results import trials
from steelyard.results.events import Block
from steelyard.results.standstill import is_standstill, standstill, stood_still, withheld_ns
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
PID = 77


def samples(others_s: float = 0.0, stolen_s: float = 0.0, seconds: int = 8, **last: object) -> list[Sample]:
    """Return samples of two cores, one a second; others take so much CPU time in the third second. `last`: of its end."""
    found = []
    for second in range(seconds + 1):
        others, stolen = (others_s, stolen_s) if second >= 3 else (0.0, 0.0)
        cpu = CpuTimes(others, 0.0, stolen, 2.0 * second)
        found.append(Sample(second * 10**9, cpu, 0.0, None, None, 0))
    found[3] = replace(found[3], **last)  # type: ignore[arg-type]
    return found


def found_with(trial: Trial, seen: list[Sample]) -> Disturbance | None:
    """Return what is found where the samples were taken while the worker ran."""
    return standstill(replace(trial, withheld_ns=withheld_ns(trial, seen)))


def during(start_s: float, found: Block) -> Block:
    return replace(found, start_ns=round(start_s * 1e9))


LONGER = during(2.2, block(1.5, 0.98))
"""A block that lasted a second more than the usual ones, without more CPU time."""


def test_blocks_that_computed_all_the_time_are_no_standstill() -> None:
    assert found_with(trial(USUAL), samples(others_s=1.5)) is None
    assert found_with(trial([]), samples(others_s=1.5)) is None


def test_a_worker_that_waits_by_itself_was_not_kept_from_computing() -> None:
    """A lock, a page fault or a thread of its own: nothing outside took anything, so its time counts."""
    waiting = trial([*USUAL, LONGER])
    assert stood_still(waiting)
    assert found_with(waiting, samples()) is None
    assert found_with(waiting, samples(others_s=0.05, stolen_s=0.02)) is None, "as much as an undisturbed machine does"
    assert found_with(waiting, []) is None


def test_nothing_is_asked_of_samples_at_another_time() -> None:
    assert found_with(trial([*USUAL, during(5.2, block(1.5, 0.98))]), samples(others_s=1.5)) is None


def test_another_program_that_had_the_processors_is_found() -> None:
    found = found_with(trial([*USUAL, LONGER]), samples(others_s=0.85))
    assert found is not None
    assert found.reason == "fake was kept from computing for 0.8 s of 3.0 s that were counted"
    assert found.severity == pytest.approx(0.8 / (0.03 * 3.01), rel=0.01)


def test_no_more_counts_than_the_worker_lost() -> None:
    found = found_with(trial([*USUAL, LONGER]), samples(others_s=2.0))
    assert found is not None and " for 1.0 s of 3.0 s " in found.reason


def test_time_that_the_hypervisor_took_is_found() -> None:
    found = found_with(trial([*USUAL, LONGER]), samples(stolen_s=0.52))
    assert found is not None and " for 0.5 s of 3.0 s " in found.reason


def test_a_machine_that_stood_still_as_a_whole_is_found() -> None:
    """The sampler should have woken when the second began, and was 0.9 s late."""
    found = found_with(trial([*USUAL, LONGER]), samples(late_s=0.7))
    assert found is not None and " for 0.7 s of 3.0 s " in found.reason
    assert found_with(trial([*USUAL, LONGER]), samples(late_s=0.04)) is None


def test_a_worker_that_was_stopped_is_found_and_another_process_that_was_is_not() -> None:
    stopped = replace(trial([*USUAL, LONGER]), pid=PID)
    found = found_with(stopped, samples(stopped=frozenset({PID})))
    assert found is not None and " for 1.0 s of 3.0 s " in found.reason
    assert found_with(stopped, samples(stopped=frozenset({PID + 1}))) is None
    before = [*USUAL, during(3.01, block(1.5, 0.98))]  # it waited for its turn until just before
    assert found_with(replace(stopped, blocks=tuple(before)), samples(stopped=frozenset({PID}))) is None


def test_what_was_recorded_decides_whenever_it_is_asked(tmp_path: Path) -> None:
    """A report, or a search that continues, has no samples of that time."""
    blocks = [{"v": 2, "t_ns": 0, "event": "samples", **asdict(each)} for each in (*USUAL, LONGER)]
    done = {"v": 2, "t_ns": 0, "event": "done"}
    folder = recorded_trials.write(tmp_path / "t", recorded_trials.job(tmp_path / "t"), [*blocks, done])
    before = trials.read(folder)
    assert (before.withheld_ns, standstill(before)) == (None, None)
    noted = watching.with_withheld(before, samples(others_s=0.85))
    again = trials.read(folder)
    assert again.withheld_ns == noted.withheld_ns == (0, 0, 0, 800_000_000)
    assert standstill(again) == standstill(noted) is not None


def test_blocks_of_two_inputs_have_their_own_times() -> None:
    steps = [replace(each, first_step=10 * number) for number, each in enumerate([*USUAL, *USUAL, LONGER])]
    both = [*steps[:3], *(replace(each, input="cached") for each in steps[3:])]
    found = found_with(trial(both), samples(others_s=0.85))
    assert found is not None and " for 0.8 s of 3.0 s " in found.reason


@pytest.mark.parametrize(
    ("reason", "is_one"),
    [
        ("a worker stood still for 0.5 s of 11.7 s that were counted", True),
        ("fake was kept from computing for 0.5 s of 11.7 s that were counted", True),
        ("other processes used 0.60 cores", False),
    ],
)
def test_reasons_of_older_records_are_known(reason: str, is_one: bool) -> None:
    assert is_standstill(reason) is is_one


def test_a_first_step_that_compiles_on_one_core_is_no_standstill() -> None:
    first = replace(block(4.0, 4.1, steps=1), epoch=1)
    later = [replace(each, epoch=1, first_step=number) for number, each in enumerate(USUAL, 1)]
    assert not stood_still(trial([first, *later]))
    assert stood_still(trial([replace(first, first_step=9), *later]))


def test_slow_memory_or_a_slow_clock_is_no_standstill() -> None:
    # The block took twice as long, and computed all that time.
    assert not stood_still(trial([*USUAL, block(1.0, 1.96)]))


def test_starvation_stands_still_as_well() -> None:
    # Another program took a third of the time.
    assert stood_still(trial([*USUAL, block(0.75, 0.98)]))


def test_blocks_of_other_sizes_are_compared_by_step() -> None:
    assert not stood_still(trial([*USUAL, block(2.5, 4.9, steps=50)]))


def test_where_another_device_computes_nothing_is_claimed() -> None:
    assert found_with(trial([*USUAL, LONGER], device="cuda"), samples(others_s=2.0)) is None


def test_without_recorded_cpu_times_nothing_is_claimed() -> None:
    assert found_with(trial([replace(each, cpu_ns=0) for each in (*USUAL, LONGER)]), samples(others_s=2.0)) is None


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
    assert stood_still(trial(blocks_of_a_process(stopped_at=125)))


def test_the_same_process_without_a_stop_is_not() -> None:
    assert not stood_still(trial(blocks_of_a_process(stopped_at=-1)))


@pytest.mark.parametrize("bursts", [0.0, 0.03])
def test_a_contender_that_waits_by_itself_gains_nothing(bursts: float) -> None:
    """The rule before looked at the worker alone, and counted the rounds in which it had not waited."""
    before, now = (
        simulated.simulated(bursts, 0.1, rule, runs=40) for rule in (simulated.by_worker, simulated.by_machine)
    )
    assert before.bias < -2 * before.error
    assert abs(now.bias) <= 2 * now.error
    assert bool(now.repeated) is bool(bursts)
