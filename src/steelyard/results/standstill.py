"""Counted blocks during which a worker did not compute, and how much of that others caused: programs, the hypervisor, a signal.

A worker that waits by itself, for a lock, a page or another thread, stands still as well. Its times count: if they were a reason
to repeat a round, only rounds in which that framework did not wait would be measured. So the samples of the machine show for how
long others kept it from computing (`withheld_ns`), and this is recorded with its trial.
"""

from collections.abc import Iterator, Sequence
from statistics import median

from steelyard.host.counters import Sample
from steelyard.host.noise import Disturbance
from steelyard.host.withheld import withheld_s
from steelyard.results.events import Block
from steelyard.results.trials import Trial

SHARE = 0.03
"""A trial stood still if it lost this share of its counted time, ..."""
SHORTEST_S = 0.05
"""... and at least this long: shorter waits are part of any program."""
LEAST_BLOCKS = 3
COUNTED = "counted"
PHASES = ("warm-up", COUNTED)
SAID = "was kept from computing for"
SAID_BEFORE = "a worker stood still for"
"""The reason in records of methods before 16, which did not check whether others had the processors."""


def withheld_ns(trial: Trial, samples: Sequence[Sample]) -> tuple[int, ...]:
    """Return for how long, at most, others kept the worker from computing in each of its counted blocks, nanoseconds.

    `samples`: of the machine, taken while it ran.
    """
    counted = [block for block in trial.blocks if block.phase == COUNTED]
    ends = [(block.start_ns, block.start_ns + block.elapsed_ns) for block in counted]
    return tuple(round(1e9 * withheld_s(samples, *span, trial.pid)) for span in ends)


def standstill(trial: Trial) -> Disturbance | None:
    """Return the disturbance by others that kept the worker from computing during counted blocks; None if there is none.

    A block that took longer than the process's other blocks without using more CPU time was not computing. That counts as far as
    the samples of the machine showed at the same time who had the processors (`Trial.withheld_ns`); without a record of that, and
    where another device computes, so that CPU times say nothing, nothing is found.
    """
    withheld = _recorded(trial)
    for source in _inputs(trial):
        lost_s = sum(min(lost, withheld.get(place, 0.0)) for place, lost in _losses(trial, source))
        counted_s = _counted_s(trial, source)
        if (severity := _severity(lost_s, counted_s)) > 1:
            reason = f"{trial.job.case.environment} {SAID} {lost_s:.1f} s of {counted_s:.1f} s that were counted"
            return Disturbance(severity, reason)
    return None


def stillness(trial: Trial) -> float:
    """Return for how long a worker stood still during counted blocks, whatever the reason, relative to the limit."""
    lost_s = {source: sum(lost for _, lost in _losses(trial, source)) for source in _inputs(trial)}
    return max((_severity(lost, _counted_s(trial, source)) for source, lost in lost_s.items()), default=0.0)


def stood_still(trial: Trial) -> bool:
    """Return whether a worker stood still during counted blocks, whatever the reason."""
    return stillness(trial) > 1


def is_standstill(reason: str) -> bool:
    """Return whether a reason for which a round was disturbed is that a worker stood still."""
    return SAID in reason or reason.startswith(SAID_BEFORE)


def _severity(lost_s: float, counted_s: float) -> float:
    return lost_s / max(SHORTEST_S, SHARE * counted_s)


def _inputs(trial: Trial) -> list[str]:
    if trial.job.case.settings.device != "cpu":
        return []
    return list(dict.fromkeys(block.input for block in trial.blocks))


def _counted_s(trial: Trial, source: str) -> float:
    return sum(block.elapsed_ns for block in trial.counted(source)) / 1e9


def _recorded(trial: Trial) -> dict[int, float]:
    """Return the seconds that were recorded of each counted block, by its place among all blocks."""
    counted = [place for place, block in enumerate(trial.blocks) if block.phase == COUNTED]
    return {place: ns / 1e9 for place, ns in zip(counted, trial.withheld_ns or (), strict=False)}


def _is_first_step(block: Block) -> bool:
    """Return whether a block is the first step of a training whose whole epochs count: it compiles, often on one core."""
    return block.epoch == 1 and block.first_step == 0


def _losses(trial: Trial, source: str) -> Iterator[tuple[int, float]]:
    """Yield the places of counted blocks of an input that took longer than their CPU time explains, with how much, seconds."""
    placed = [
        (place, each)
        for place, each in enumerate(trial.blocks)
        if each.input == source and each.phase in PHASES and not _is_first_step(each)
    ]
    blocks = [each for _, each in placed]
    if len(blocks) < LEAST_BLOCKS or not all(block.cpu_ns for block in blocks):
        return
    usual_ns = median(block.elapsed_ns / block.steps for block in blocks)
    usual_cpu_ns = median(block.cpu_ns / block.steps for block in blocks)
    cores = max(1.0, usual_cpu_ns / usual_ns)
    for place, block in placed:
        longer = block.elapsed_ns - usual_ns * block.steps
        more_cpu = max(0.0, block.cpu_ns - usual_cpu_ns * block.steps)
        lost_s = (longer - more_cpu / cores) / 1e9
        # Blocks differ by a little for many reasons, so only those that are out of the ordinary count.
        if block.phase == COUNTED and lost_s > SHORTEST_S / 2:
            yield place, lost_s
