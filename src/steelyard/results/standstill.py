"""Counted blocks during which a worker did not run: it was stopped, or others had the processors."""

from statistics import median

from steelyard.host.noise import Disturbance
from steelyard.results.events import Block
from steelyard.results.trials import Trial

SHARE = 0.03
"""A trial stood still if it lost this share of its counted time, ..."""
SHORTEST_S = 0.05
"""... and at least this long: shorter waits are part of any program."""
LEAST_BLOCKS = 3
PHASES = ("warm-up", "counted")


def standstill(trial: Trial) -> Disturbance | None:
    """Return what it cost that the worker did not run during counted blocks; None if it did.

    A block that took longer than the process's other blocks without using more CPU time was not computing. Slow memory or a lower
    clock cost CPU time as well, so they do not count. Where another device computes, CPU times say nothing, and nothing is found.
    """
    if trial.job.case.settings.device != "cpu":
        return None
    for source in dict.fromkeys(block.input for block in trial.blocks):
        lost_s, counted_s = _lost_s(trial, source), sum(block.elapsed_ns for block in trial.counted(source)) / 1e9
        severity = lost_s / max(SHORTEST_S, SHARE * counted_s)
        if severity > 1:
            return Disturbance(
                severity, f"a worker stood still for {lost_s:.1f} s of {counted_s:.1f} s that were counted"
            )
    return None


def _is_first_step(block: Block) -> bool:
    """Return whether a block is the first step of a training whose whole epochs count: it compiles, often on one core."""
    return block.epoch == 1 and block.first_step == 0


def _lost_s(trial: Trial, source: str) -> float:
    """Return by how much longer the counted blocks of an input took than their CPU time explains, seconds."""
    blocks = [
        each for each in trial.blocks if each.input == source and each.phase in PHASES and not _is_first_step(each)
    ]
    if len(blocks) < LEAST_BLOCKS or not all(block.cpu_ns for block in blocks):
        return 0.0
    usual_ns = median(block.elapsed_ns / block.steps for block in blocks)
    usual_cpu_ns = median(block.cpu_ns / block.steps for block in blocks)
    cores = max(1.0, usual_cpu_ns / usual_ns)

    def lost_ns(block: Block) -> float:
        longer = block.elapsed_ns - usual_ns * block.steps
        more_cpu = max(0.0, block.cpu_ns - usual_cpu_ns * block.steps)
        return max(0.0, longer - more_cpu / cores)

    # Blocks differ by a little for many reasons, so only those that are out of the ordinary count.
    lost = [lost_ns(block) for block in blocks if block.phase == "counted"]
    return sum(each for each in lost if each > SHORTEST_S * 1e9 / 2) / 1e9
