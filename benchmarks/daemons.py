"""Step times beside Ray's processes and without them: a training has turns in which these run, and turns in which they do not.

The cluster has one node, on this machine, with its head: more of Ray's processes than beside a node whose head is elsewhere. It
was started as docs/cluster.md says, without Ray's log monitor. The same training is compared with itself, so that differences
between processes play no part.
"""

from __future__ import annotations

import math
import os
import random
import signal
import tempfile
import time
from dataclasses import asdict
from pathlib import Path

import numpy as np
import psutil

from benchmarks.cluster import cluster
from benchmarks.implementations import inputs_for, plan_for
from benchmarks.installed import interpreters
from benchmarks.processes import CONDITIONS, Process
from benchmarks.rows import Row
from steelyard.measure.jobs import certifying
from steelyard.statistics.decision_plan import DecisionPlan
from steelyard.statistics.intervals import student_quantile

FRAMEWORK = "pytorch"
GROUPS = ("resnet18:digits", "lstm-imdb:reviews")
PAIRS = 500  # of turns of a quarter second each, about five minutes for each network
SETTLED_S = 10.0
# A verdict of a run calls two contenders equal if the whole interval is within this.
EQUAL = 1 + DecisionPlan.delta


def measure() -> list[Row]:
    """Return one row for each network: its steps beside Ray's processes over those without them."""
    with tempfile.TemporaryDirectory() as name, cluster(Path(name), "a"):
        time.sleep(SETTLED_S)
        daemons = [each for each in psutil.Process().children(recursive=True) if _of_ray(each)]
        if not daemons:
            raise RuntimeError("None of Ray's processes was found.")
        return [_compared(group, daemons) for group in GROUPS]


def _of_ray(process: psutil.Process) -> bool:
    return any("ray" in part for part in process.cmdline())


def _compared(group: str, daemons: list[psutil.Process]) -> Row:
    plan = plan_for(FRAMEWORK, group)
    (variant,) = plan.variants
    ((_, python),) = interpreters([FRAMEWORK])
    trained = Process(python, asdict(certifying(plan, variant, inputs_for(plan), Path(os.devnull))), CONDITIONS[0])
    draw = random.Random(1)
    try:
        pairs = [
            {beside: _turn(trained, daemons, beside) for beside in draw.sample((True, False), 2)} for _ in range(PAIRS)
        ]
    finally:
        trained.end()
        _send(daemons, signal.SIGCONT)
    logs = np.array([math.log(each[True] / each[False]) for each in pairs])
    middle, reach = logs.mean(), student_quantile(0.975, PAIRS - 1) * logs.std(ddof=1) / math.sqrt(PAIRS)
    low, high = math.exp(middle - reach), math.exp(middle + reach)
    how = f"{math.exp(middle):.4f} [{low:.4f}, {high:.4f}], {PAIRS} pairs of turns, {len(daemons)} processes of Ray"
    return Row(f"step beside Ray / without it, upper end of the interval, {group}", high, EQUAL, "at most", how)


def _turn(trained: Process, daemons: list[psutil.Process], beside: bool) -> float:
    """Return nanoseconds per step of one turn. Before it, Ray's processes work off what they missed while they were stopped."""
    _send(daemons, signal.SIGCONT if beside else signal.SIGSTOP)
    trained.turn(1 / 4)
    return trained.turn()


def _send(daemons: list[psutil.Process], number: int) -> None:
    for each in daemons:
        each.send_signal(number)
