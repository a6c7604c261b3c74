"""What turns bring: the scatter of identical processes, measured in rounds, first one after the other and then in turns.

What a wait does to a framework is measured by `benchmarks.waits`.
"""

from __future__ import annotations

import math
import os
import random
from dataclasses import asdict
from pathlib import Path

import numpy as np

from benchmarks.implementations import inputs_for, plan_for
from benchmarks.installed import interpreters
from benchmarks.noises import ratio_scatter
from benchmarks.processes import CONDITIONS, TURNS, Process
from benchmarks.rows import Row
from steelyard.measure.jobs import certifying

ROUNDS, CONTENDERS = 10, 3
MOST_SCATTER = 0.67


def measure() -> list[Row]:
    """Return one row for the scatter."""
    return [_scatter()]


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
