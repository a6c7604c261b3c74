"""What turns bring, and what they do to a framework: the scatter of identical processes, and blocks that follow a wait.

Identical processes are measured in rounds, first one after the other and then in turns. And each framework trains in blocks:
every other one follows the block before it at once, the others follow a wait while another program uses all cores and caches.
"""

from __future__ import annotations

import math
import os
import random
import signal
import subprocess
import sys
import time
from dataclasses import asdict, replace
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import numpy as np
import psutil

from benchmarks.implementations import BenchmarkError, inputs_for, plan_for, row, standard_error
from benchmarks.installed import interpreters
from benchmarks.noises import ratio_scatter
from benchmarks.processes import CONDITIONS, TURNS, Process
from benchmarks.rows import Row
from steelyard.measure.jobs import certifying, measuring
from steelyard.measure.launch import Guard, launch
from steelyard.plan import resolve
from steelyard.plan.options import Options

if TYPE_CHECKING:
    from steelyard.results.trials import Trial

ROUNDS, CONTENDERS = 10, 3
# Steps that take about ten seconds.
GROUPS = {"lstm-imdb:reviews": 600, "resnet18:digits": 250}
WAIT_S, LIMIT_S = 0.5, 120.0
OCCUPIED = "import numpy\nvalues = numpy.ones((1500, 1500), 'f4')\nwhile True: values @ values"
START_S = 2.0  # of this program
MOST_SCATTER, MOST_SLOWER = 0.67, 1.02
# A standard error of a third of what is asked for; reached with this many processes, or not.
PRECISE, MOST_PROCESSES = 0.007, 5


def measure(names: list[str] | None = None) -> list[Row]:
    """Return one row for the scatter, and one for each framework and network."""
    return [_scatter(), *(_after_wait(name, python, group) for group in GROUPS for name, python in interpreters(names))]


def _scatter() -> Row:
    """Compare the scatter of the ratio of two identical processes, both ways with the same processes and as many steps."""
    plan = plan_for("pytorch", "resnet18:digits")
    (variant,) = plan.variants
    job = asdict(certifying(plan, variant, inputs_for(plan), Path(os.devnull)))
    ((_, python),) = interpreters(["pytorch"])
    draw = random.Random(1)
    found = np.zeros((2, ROUNDS, CONTENDERS, TURNS))
    for number in range(ROUNDS):
        processes: dict[int, Process] = {}
        for place in draw.sample(range(CONTENDERS), CONTENDERS):
            processes[place] = Process(python, job, CONDITIONS[0])
            found[0, number, place] = [math.log(processes[place].turn()) for _ in range(TURNS)]
        for turn in range(TURNS):
            for place in draw.sample(range(CONTENDERS), CONTENDERS):
                found[1, number, place, turn] = math.log(processes[place].turn())
        for each in processes.values():
            each.end()
    alone, turns = (ratio_scatter(values.mean(axis=2)) for values in found)
    how = f"{turns:.1%} / {alone:.1%}, {ROUNDS} rounds of {CONTENDERS} identical processes, {TURNS} turns of a quarter second"
    return Row("scatter of ratios in turns / one process after the other", turns / alone, MOST_SCATTER, "at most", how)


def _after_wait(name: str, python: Path, group: str) -> Row:
    """Compare blocks after a wait with the two beside each, so that a steady drift cancels; in more processes if they scatter."""
    ratios: list[float] = []
    for _ in range(MOST_PROCESSES):
        trial = _waiting(name, python, group)
        times = [block.elapsed_ns / block.steps for block in trial.blocks if block.phase == "counted"]
        ratios += [
            times[place] / math.sqrt(times[place - 1] * times[place + 1]) for place in range(2, len(times) - 1, 2)
        ]
        if standard_error(ratios) <= PRECISE:
            break
    found = {"ratios": ratios, "step_ms": median(times) / 1e6, "steps": trial.counted("pipeline")[0].steps}
    return row(f"step after waiting / without, {name}, {group}", found, MOST_SLOWER, "at most")


def _waiting(name: str, python: Path, group: str) -> Trial:
    """Train in one process. Every other block follows a wait."""
    plan = resolve.plan(Options(workloads=(group,), frameworks=(name,), protocol="sequential:pipeline"))
    (variant,) = plan.variants
    pid, waits = 0, 0
    other = subprocess.Popen([sys.executable, "-c", OCCUPIED])

    def watch(event: dict[str, Any]) -> None:
        nonlocal pid, waits
        if event["event"] == "hello":
            pid = event["pid"]
        if event["event"] == "waits":
            while psutil.Process(pid).status() != psutil.STATUS_STOPPED:
                time.sleep(0.001)
            waits += 1
            if waits % 2:  # it is stopped afterwards, as contenders are: threads may wait busily
                other.send_signal(signal.SIGCONT)
                time.sleep(WAIT_S)
                other.send_signal(signal.SIGSTOP)
            os.killpg(os.getpgid(pid), signal.SIGCONT)

    time.sleep(START_S)
    other.send_signal(signal.SIGSTOP)
    try:
        with TemporaryDirectory() as folder:
            job = measuring(plan, variant, inputs_for(plan), 2, 0, Path(folder, "trial"), turns=True)
            job = replace(job, schedule=replace(job.schedule, counted_min=GROUPS[group], counted_max=GROUPS[group]))
            trial = launch(job, python, watch, Guard(LIMIT_S))
    finally:
        other.kill()
        other.wait()
    if trial.error:
        raise BenchmarkError(f"{variant.key} failed: {trial.error[1]}")
    return trial
