"""The number of steps that a process should count, from a run's scatter of steps and of processes. Pure functions."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import log, sqrt
from statistics import fmean, variance

import numpy as np

FIRST_RATIO = 2.0
"""The assumed s_step / s_process of the first round. Recorded runs had 0.9 to 3.4; see docs/methods.md."""
FIRST_FREEDOM = 4.0
"""The weight of `FIRST_RATIO` relative to the run's own scatter of processes, in degrees of freedom."""
LOWEST, HIGHEST = 0.5, 4.0
"""Bounds of the ratio: beyond them the number of steps is limited by other rules."""


@dataclass(frozen=True)
class Process:
    """The counted blocks of one process: (steps, nanoseconds per step) each."""

    blocks: Sequence[tuple[int, float]]

    @property
    def steps(self) -> int:
        """All counted steps."""
        return sum(steps for steps, _ in self.blocks)

    @property
    def log_mean(self) -> float:
        """Logarithm of the time per step."""
        return log(sum(steps * ns for steps, ns in self.blocks) / self.steps)

    @property
    def step_variance(self) -> float | None:
        """Relative variance of one step, from the scatter of block means; None with fewer than two blocks.

        Drift within the process is part of it: more steps reduce that, too.
        """
        if len(self.blocks) < 2:
            return None
        return variance([log(ns) for _, ns in self.blocks]) * self.steps / len(self.blocks)


def noise_ratios(processes: Mapping[str, Mapping[int, Process]]) -> dict[str, float]:
    """Return s_step / s_process for each contender: {name: {round: process}} -> {name: ratio}.

    The scatter of processes is the rest of the logarithms after the means of contenders and rounds are removed (a two-way
    layout over the rounds that all contenders with the most rounds finished), less the part of the steps. It is pooled over
    the contenders; the scatter of steps is computed by contender. Contenders without two blocks in a process get `FIRST_RATIO`.
    """
    steps = {name: _step_variance(rounds.values()) for name, rounds in processes.items()}
    known = [value for value in steps.values() if value]
    if not known:
        return dict.fromkeys(processes, FIRST_RATIO)
    observed, freedom = _process_variance(processes, steps)
    usual = fmean(known) / FIRST_RATIO**2
    pooled = (FIRST_FREEDOM * usual + freedom * observed) / (FIRST_FREEDOM + freedom)
    return {name: min(HIGHEST, max(LOWEST, sqrt(own / pooled))) if own else FIRST_RATIO for name, own in steps.items()}


def _step_variance(processes: Iterable[Process]) -> float | None:
    found = [value for each in processes if (value := each.step_variance) is not None]
    return fmean(found) if found else None


def _process_variance(
    processes: Mapping[str, Mapping[int, Process]], steps: Mapping[str, float | None]
) -> tuple[float, float]:
    """Return the variance between processes, at least 0, and its degrees of freedom."""
    most = max((len(rounds) for rounds in processes.values()), default=0)
    complete = {name: rounds for name, rounds in processes.items() if len(rounds) == most and steps[name]}
    common = sorted(set.intersection(*(set(rounds) for rounds in complete.values()))) if complete else []
    if len(complete) < 2 or len(common) < 2:
        return 0.0, 0.0
    freedom = (len(complete) - 1) * (len(common) - 1)
    logs = np.array([[rounds[number].log_mean for number in common] for rounds in complete.values()])
    left = logs - logs.mean(0) - logs.mean(1, keepdims=True) + logs.mean()
    of_steps = fmean(
        (steps[name] or 0.0) / rounds[number].steps for name, rounds in complete.items() for number in common
    )
    return max(0.0, float((left**2).sum()) / freedom - of_steps), float(freedom)
