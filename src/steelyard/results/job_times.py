"""The time of a job by its number of steps, from the record of one process."""

from collections.abc import Iterable

from steelyard.results.events import Block
from steelyard.results.trials import Trial
from steelyard.statistics.break_even import JobTime

ONCE = ("import", "build")
"""Phases before the first step that also occur in a user's own program."""


def job_time(trial: Trial) -> JobTime | None:
    """Return the one-time cost of a job and its cost per step, in nanoseconds; None if the process has no steady steps.

    The one-time cost: importing the framework, building the network, and the additional time of the steps before the steady ones,
    compared with as many steady steps: compilation, tracing, warming up. Steady are the counted steps of the first input; where
    whole epochs are trained, those after the first epoch.
    """
    early, steady = _parts(trial)
    steps = sum(each.steps for each in steady)
    if not steps or not early:
        return None
    step_ns = _elapsed(steady) / steps
    excess = _elapsed(early) - step_ns * sum(each.steps for each in early)
    once = sum(trial.phases_ns.get(name, 0) for name in ONCE) + excess
    return JobTime(max(0.0, once), step_ns)  # below 0 only by noise


def _parts(trial: Trial) -> tuple[list[Block], list[Block]]:
    """Return the blocks before the steady ones, and the steady ones."""
    if trial.epochs:
        return trial.epochs.get(1, []), [block for epoch, each in trial.epochs.items() if epoch > 1 for block in each]
    first = [block for block in trial.blocks if block.input == trial.blocks[0].input]
    counted = next((place for place, block in enumerate(first) if block.phase == "counted"), len(first))
    return first[:counted], [block for block in first if block.phase == "counted"]


def _elapsed(blocks: Iterable[Block]) -> int:
    return sum(block.elapsed_ns for block in blocks)
