"""What repeating rounds does to the ratio of a contender that stalls by itself, simulated: the rule, and that before method 16.

Two contenders of equal speed take part in rounds. One of them waits by itself in some of its blocks, as for a lock; that is part
of its time. The machine is quiet, or another program takes a core for a second now and then. A rule is fair if the ratio of the
rounds that it counts is that of all first attempts. Run as `python -m benchmarks.standstill` for the table of the methods page.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import log
from pathlib import Path
from statistics import fmean, stdev

import numpy as np

from benchmarks.rows import Row
from steelyard.host.counters import CpuTimes, Sample
from steelyard.host.noise import is_unusual
from steelyard.measure.rounds import MOST_ATTEMPTS
from steelyard.results.events import Block
from steelyard.results.standstill import standstill, stillness, withheld_ns
from steelyard.results.trials import Trial
from steelyard_worker.case import Case, Optimizer, Settings
from steelyard_worker.protocol import Data, Job, Schedule

RUNS, ROUNDS = 250, 6
WARM_UP, COUNTED = 4, 6
BLOCK_S, STEPS, CORES, SCATTER = 0.5, 10, 2.0, 0.02
STALL_S = 0.3
"""Mean of a stall; stalls are exponentially distributed."""
SHARES = (0.01, 0.05, 0.1, 0.2)
"""Of the blocks of the contender that stalls by itself."""
QUIET_CORES = 0.02
BURSTS = 0.03
"""Share of the seconds in which another program takes a core, on the machine that is not quiet."""
MOST_BIAS = 0.005
NAMES = ("stalls", "steady")

Rule = Callable[[Trial, list[Sample]], float]


@dataclass(frozen=True)
class Outcome:
    """`bias` of the ratio (relative, with its standard error), and the share of the rounds that were repeated."""

    bias: float
    error: float
    repeated: float


def measure() -> list[Row]:
    """Return one row for each share of stalls and each machine: the bias of the rule."""
    return [_row(machine, bursts, share) for machine, bursts in _machines() for share in SHARES]


def _machines() -> tuple[tuple[str, float], ...]:
    return ("quiet machine", 0.0), ("another program now and then", BURSTS)


def _row(machine: str, bursts: float, share: float) -> Row:
    now, before = simulated(bursts, share, by_machine), simulated(bursts, share, by_worker)
    detail = (
        f"{now.bias:+.2%} (standard error {now.error:.2%}), {now.repeated:.0%} of the rounds repeated; before method 16 "
        f"{before.bias:+.1%}, {before.repeated:.0%}"
    )
    name = f"bias of a contender that stalls by itself in {share:.0%} of its blocks, {machine} (share)"
    return Row(name, abs(now.bias), MOST_BIAS, "at most", detail)


def simulated(bursts: float, share: float, rule: Rule, runs: int = RUNS) -> Outcome:
    """Return what a rule does to the ratio of a contender that stalls by itself in this share of its blocks.

    `bursts`: share of the seconds in which another program takes a core. Every rule meets the same first attempts.
    """
    found = [_run(np.random.default_rng([run, round(1000 * share)]), bursts, share, rule) for run in range(runs)]
    shifts = [shift for shift, _ in found]
    return Outcome(fmean(shifts), stdev(shifts) / len(shifts) ** 0.5, fmean(repeated for _, repeated in found))


def by_machine(trial: Trial, samples: list[Sample]) -> float:
    """Return how severe a standstill is by the rule."""
    disturbance = standstill(replace(trial, withheld_ns=withheld_ns(trial, samples)))
    return disturbance.severity if disturbance else 0.0


def by_worker(trial: Trial, _samples: list[Sample]) -> float:
    """Return how severe it is by the rule before method 16, which looked at the worker alone."""
    found = stillness(trial)
    return found if found > 1 else 0.0


def _run(random: np.random.Generator, bursts: float, share: float, rule: Rule) -> tuple[float, float]:
    """Return the log ratio of the rounds that count less that of all first attempts, and the share of rounds repeated."""
    severities: list[float] = []
    first, counts, repeated = [], [], 0
    for seed in random.integers(0, 2**63, ROUNDS):
        draw = np.random.default_rng(seed)
        for attempt in range(MOST_ATTEMPTS):
            ratio, severity = _attempt(draw, bursts, share, rule)
            if not attempt:
                first.append(ratio)
            again = attempt + 1 < MOST_ATTEMPTS and is_unusual(severity, severities)
            severities.append(severity)
            repeated += again and not attempt
            if not again:
                break
        counts.append(ratio)
    return fmean(counts) - fmean(first), repeated / ROUNDS


def _attempt(draw: np.random.Generator, bursts: float, share: float, rule: Rule) -> tuple[float, float]:
    """Return the log ratio of one attempt at a round, and how severe the rule calls its disturbance."""
    others = QUIET_CORES * draw.exponential(size=60) + (draw.uniform(size=60) < bursts)
    samples = _samples(others)
    trials, now = {}, 0.0
    for name in NAMES:
        trials[name], now = _trial(draw, now, others, share if name == NAMES[0] else 0.0)
    ratio = log(trials["stalls"].location_ns("cached") / trials["steady"].location_ns("cached"))  # type: ignore[operator]
    return ratio, max(rule(trial, samples) for trial in trials.values())


def _samples(others: np.ndarray) -> list[Sample]:
    """Return a sample at every second; `others`: the cores that other programs use in each."""
    used = [0.0, *np.cumsum(others)]
    return [
        Sample(second * 10**9, CpuTimes(float(busy), 0.0, 0.0, CORES * second), 0.0, None, None, 0)
        for second, busy in enumerate(used)
    ]


def _trial(draw: np.random.Generator, now: float, others: np.ndarray, share: float) -> tuple[Trial, float]:
    """Return a process that begins at `now`, and when it ends, seconds. Another program delays the block that it meets."""
    blocks = []
    for number in range(WARM_UP + COUNTED):
        own = BLOCK_S * draw.normal(1, SCATTER)
        stall = draw.exponential(STALL_S) if draw.uniform() < share else 0.0
        delay = draw.uniform(0.3, 1.0) * min(own, others[int(now)]) if others[int(now)] > 0.5 else 0.0
        elapsed = own + stall + delay
        phase = "warm-up" if number < WARM_UP else "counted"
        times = [round(each * 1e9) for each in (now, elapsed, own * CORES)]
        blocks.append(Block("cached", phase, STEPS, times[0], times[1], 0, times[2]))
        now += elapsed + 0.05
    return replace(TRIAL, blocks=tuple(blocks)), now


CASE = Case("line", "small", {"batch": 16}, "0" * 16, {}, Optimizer("sgd", 0.1), "scripted", Settings("scripted"))
NOWHERE = "/nonexistent"
TRIAL = Trial(
    Path(NOWHERE),
    Job(
        kind="measure",
        case=CASE,
        workload_folder=NOWHERE,
        weights=NOWHERE,
        data=Data(NOWHERE),
        folder=NOWHERE,
        schedule=Schedule(inputs=("cached",)),
    ),
    done=True,
)


def _print_table() -> None:
    print("| machine | stalls in | rule | bias of the ratio | rounds repeated |")
    print("|---|---:|---|---:|---:|")
    for machine, bursts in _machines():
        for share in SHARES:
            for name, rule in (("before method 16", by_worker), ("now", by_machine)):
                found = simulated(bursts, share, rule)
                print(
                    f"| {machine} | {share:.0%} | {name} | {found.bias:+.1%} ± {found.error:.1%} | {found.repeated:.0%} |"
                )


if __name__ == "__main__":
    _print_table()
