"""Seconds until a difference of 10 % is found and until equality within 5 % is shown, relative to the rules before method 3.

Replayed from recorded noise: the counted blocks of identical processes give the scatter of steps and of processes, and the rules
of each method the length of the warm-up and the number of counted steps.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import dataclass
from math import inf, log1p, sqrt
from pathlib import Path
from statistics import fmean, quantiles

import numpy as np

from benchmarks.rows import Row
from steelyard.plan.protocols import TURNS
from steelyard.statistics.decision import DecisionPlan
from steelyard.statistics.effort import Process, noise_ratios
from steelyard_worker import steady
from steelyard_worker.measure import WARMUP_BLOCK_STEPS
from steelyard_worker.protocol import Schedule

RECORDED = Path(__file__).with_name("recorded_blocks.json")
"""[steps, milliseconds per step] of every counted block of three identical contenders in twelve rounds, on a loud machine:
PyTorch 2.13 (eager) training ResNet-18 with its own pipeline, on two virtual cores of a shared host. A list of rounds.
"""
START_S = 3.3
"""Import, build and first step of these processes."""
START_BEFORE_S = START_S + 2.0
"""The same before eager PyTorch stopped importing the settings of its compiler."""
QUIET_STEP, QUIET_PROCESS = 0.02, 0.0055
"""Relative scatter of steps and of processes on a quiet machine: ratios of two processes then scatter by 0.8 %."""
DIFFERENCE, MARGIN, POWER = log1p(0.10), log1p(0.05), 0.95
MOST_ROUNDS = 400
SEEDS = 400


@dataclass(frozen=True)
class Noise:
    """Relative standard deviation of one step and of a process, and seconds per step."""

    step: float
    process: float
    step_s: float


def measure() -> list[Row]:
    """Return the rows: seconds now over seconds before, for a loud and a quiet machine."""
    loud = recorded()
    rows = []
    for name, noise, limit in (("loud", loud, 0.5), ("quiet", Noise(QUIET_STEP, QUIET_PROCESS, loud.step_s), 1.0)):
        before, now = _before(noise), _now(noise)
        detail = f"{before[0]:.1f} s and {now[0]:.1f} s a process, {before[1]} and {now[1]} counted steps"
        for title, share, factor in (
            ("10 % difference found", DIFFERENCE, 0.5),
            ("equality within 5 % shown", MARGIN, 1.0),
        ):
            seconds = [_seconds(noise, process_s, steps, share, factor) for process_s, steps in (before, now)]
            rows.append(
                Row(f"{title}, {name} machine: seconds now / before", seconds[1] / seconds[0], limit, "at most", detail)
            )
    return rows


def recorded(path: Path = RECORDED) -> Noise:
    """Return the scatter in a record of blocks."""
    rounds = json.loads(path.read_text(encoding="utf-8"))
    processes = [
        {number: Process([(steps, ms) for steps, ms in found[place]]) for number, found in enumerate(rounds)}
        for place in range(len(rounds[0]))
    ]
    every = [each for found in processes for each in found.values()]
    step = sqrt(fmean(each.step_variance or 0.0 for each in every))
    logs = np.array([[each.log_mean for each in found.values()] for found in processes])
    left = logs - logs.mean(0)
    total = float((left**2).sum()) / (left.size - left.shape[1])
    of_steps = step**2 / fmean(each.steps for each in every)
    return Noise(step, sqrt(max(0.0, total - of_steps)), float(np.exp(logs.mean())) / 1000)


def _before(noise: Noise) -> tuple[float, int]:
    """Return seconds of a process and its counted steps by the rules before: both inputs always, ratio 4, pyperf's test."""
    warm_s = _warm_up_s(noise, _windows_agree)
    steps = steady.counted_steps(START_BEFORE_S + warm_s, noise.step_s, 4.0, Schedule.counted_min, Schedule.counted_max)
    return START_BEFORE_S + warm_s + (2 * steps + steady.SETTLED_STEPS) * noise.step_s, steps


def _now(noise: Noise) -> tuple[float, int]:
    """Return the same by the rules of today, in the rounds after the first three.

    Turns take their time here, but what they bring is not counted: the record is of processes one after the other.
    """
    warm_s = _warm_up_s(noise, steady.is_steady)
    ratio = _estimated_ratio(noise)
    start_s = START_S + warm_s
    steps = steady.counted_steps(start_s, noise.step_s, ratio, Schedule.counted_min, Schedule.counted_max)
    size = steady.block_steps(noise.step_s, Schedule.turn_min_s, Schedule.block_min_steps)
    steps = size * max(math.ceil(steps / size), steady.turns(start_s, size * noise.step_s, TURNS))
    return start_s + steps * noise.step_s, steps


def _estimated_ratio(noise: Noise) -> float:
    """Return the mean ratio that runs of five contenders and six rounds would find."""
    random = np.random.default_rng(1)

    def process() -> Process:
        level = random.normal(0, noise.process)
        return Process([(10, float(np.exp(level + random.normal(0, noise.step / sqrt(10))))) for _ in range(3)])

    runs = [{str(name): {number: process() for number in range(6)} for name in range(5)} for _ in range(50)]
    return fmean(ratio for run in runs for ratio in noise_ratios(run).values())


def _warm_up_s(noise: Noise, is_steady: Callable[[list[float]], bool]) -> float:
    """Return the mean length of the warm-up of a process that is warm from the start, seconds."""
    random, block_s, lengths = np.random.default_rng(2), WARMUP_BLOCK_STEPS * noise.step_s, []
    for _ in range(SEEDS):
        blocks: list[float] = []
        while len(blocks) * WARMUP_BLOCK_STEPS < Schedule.warmup_cap_steps:
            blocks.append(float(np.exp(random.normal(0, noise.step / sqrt(WARMUP_BLOCK_STEPS)))))
            steps, elapsed_s = len(blocks) * WARMUP_BLOCK_STEPS, len(blocks) * block_s
            if steps >= Schedule.warmup_min_steps and elapsed_s >= Schedule.warmup_min_s and is_steady(blocks):
                break
        lengths.append(len(blocks) * block_s)
    return fmean(lengths)


def _windows_agree(blocks: list[float]) -> bool:
    """Compare two windows of up to 20 steps as methods 1 and 2 did: quartiles within 5 %, the mean within -50 % and +10 %."""
    values = [block for block in blocks for _ in range(WARMUP_BLOCK_STEPS)]
    width = min(20, len(values) // 2)
    old, new = values[-2 * width : -width], values[-width:]
    (old_q1, _, old_q3), (new_q1, _, new_q3) = quantiles(old, n=4), quantiles(new, n=4)
    outlier = old[0] > old_q3 + 1.5 * (old_q3 - old_q1)
    change = fmean(new) / fmean(old) - 1
    return (
        not outlier and -0.5 <= change <= 0.1 and abs(new_q1 / old_q1 - 1) <= 0.05 and abs(new_q3 / old_q3 - 1) <= 0.05
    )


def _seconds(noise: Noise, process_s: float, steps: int, distance: float, share: float) -> float:
    """Return the time of two contenders until intervals at the error of one look are narrower than `distance` with 95 % power.

    `share`: 1/2 of the error for a two-sided difference, all of it for each of the two one-sided tests of an equality.
    """
    from scipy.stats import norm, t

    scatter = sqrt(2 * (noise.process**2 + noise.step**2 / steps))
    error = float(DecisionPlan().error_at(np.array([12]))[0]) * share
    beyond = norm.ppf(POWER if share < 1 else (1 + POWER) / 2)
    for rounds in range(2, MOST_ROUNDS):
        if (t.ppf(1 - error, rounds - 1) + beyond) * scatter / sqrt(rounds) <= distance:
            return rounds * 2 * process_s
    return inf
