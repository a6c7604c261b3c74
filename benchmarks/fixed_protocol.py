"""Time of the sequential protocol relative to one of fixed length that decides as much with the same error.

Both are simulated. The fixed protocol runs 210 steps in every process, as published comparisons do, in as many rounds as it takes
to decide as many comparisons with the fastest as the sequential protocol, and looks once, with the whole error of 5 %.
"""

from __future__ import annotations

from math import log1p, sqrt
from statistics import fmean

import numpy as np

from benchmarks.rows import Row
from steelyard.statistics.decision import DecisionPlan
from steelyard.statistics.effort import HIGHEST, LOWEST
from steelyard.statistics.pair_evidence import pair_indices
from steelyard.statistics.simulation import Outcome, simulate
from steelyard_worker import steady
from steelyard_worker.protocol import Schedule

FAMILIES = 2000
PUBLISHED_STEPS = 210
MOST_FIXED_ROUNDS = 60
LIMIT = 0.35
SLOWER = (0.0, 0.05, 0.15, 0.40, 1.0)
"""How much slower the five contenders are than the fastest."""
STEP_SCATTER = 0.03
QUIET, LOUD = 0.005, 0.05
"""Scatter of processes."""
WORKLOADS = ((0.05, 8.0), (0.5, 12.0), (3.0, 20.0))
"""Seconds of a step and of a start: a small network, one of medium size, a large one."""


def measure() -> list[Row]:
    """Return one row for a quiet and one for a loud machine: the mean over the workloads."""
    return [_row(name, scatter) for name, scatter in (("quiet", QUIET), ("loud", LOUD))]


def _row(machine: str, scatter: float) -> Row:
    found = [_share(scatter, step_s, start_s) for step_s, start_s in WORKLOADS]
    detail = "; ".join(
        f"{share:.2f} at {step_s:g} s a step ({how})"
        for (share, how), (step_s, _) in zip(found, WORKLOADS, strict=True)
    )
    return Row(
        f"time relative to a fixed protocol, {machine} machine (share)",
        fmean(share for share, _ in found),
        LIMIT,
        "at most",
        detail,
    )


def _share(scatter: float, step_s: float, start_s: float) -> tuple[float, str]:
    """Return sequential time over fixed time, and the rounds of both."""
    random, schedule, truth = np.random.default_rng(7), Schedule(), np.log1p(np.array(SLOWER))
    ratio = min(HIGHEST, max(LOWEST, STEP_SCATTER / scatter))
    counted = steady.counted_steps(start_s, step_s, ratio, schedule.counted_min, schedule.counted_max)
    process_s = start_s + (schedule.warmup_min_steps + counted) * step_s
    plan = DecisionPlan()
    outcome = simulate(_values(random, truth, scatter, counted, plan.most_rounds), truth, plan)
    rounds = _fixed_rounds(random, truth, scatter, _with_the_fastest(outcome))
    fixed_s = rounds * len(truth) * (start_s + PUBLISHED_STEPS * step_s)
    processes = float(outcome.processes.mean())
    return (
        processes * process_s / fixed_s,
        f"{processes / len(truth):.1f} rounds of {counted} steps, {rounds} of {PUBLISHED_STEPS}",
    )


def _values(random: np.random.Generator, truth: np.ndarray, scatter: float, steps: int, rounds: int) -> np.ndarray:
    noise = sqrt(log1p(scatter) ** 2 + log1p(STEP_SCATTER) ** 2 / steps)
    return np.asarray(random.normal(0.0, noise, (FAMILIES, len(truth), rounds)) + truth[:, None])


def _fixed_rounds(random: np.random.Generator, truth: np.ndarray, scatter: float, wanted: float) -> int:
    """Return the fewest rounds that decide the wanted share of comparisons in one look."""
    for rounds in range(2, MOST_FIXED_ROUNDS):
        values = _values(random, truth, scatter, PUBLISHED_STEPS, rounds)
        if _with_the_fastest(simulate(values, truth, DecisionPlan.single_look(rounds))) >= wanted:
            return rounds
    return MOST_FIXED_ROUNDS


def _with_the_fastest(outcome: Outcome) -> float:
    """Return the share of comparisons with the fastest that are decided: these are what the rounds go on for."""
    first, _ = pair_indices(len(SLOWER))
    return float(outcome.decided[:, first == 0].mean())
