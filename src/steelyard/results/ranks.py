"""The records of the other ranks of a trial, and values over all of its ranks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from steelyard.errors import UserError
from steelyard_worker import protocol
from steelyard_worker.strategy import parts_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from steelyard.results.trials import Trial
    from steelyard_worker.protocol import Job

    Replay = Callable[[Any, Job, Iterable[dict[str, Any]]], Trial]

Number = TypeVar("Number", int, float)


def processes(job: Job) -> int:
    """Return the number of ranks that are processes of their own; 1 where one process drives all devices."""
    return parts_of(job.case.strategy) if job.spread and job.spread.several_processes else 1


def read(first: Trial, replay: Replay) -> tuple[Trial, ...] | None:
    """Return the records of the other ranks of a trial, by rank; empty for a single process.

    None: the record of a rank is missing, damaged, has no end, or has other blocks than that of the first rank.
    """
    found = []
    for rank in range(1, processes(first.job)):
        folder = protocol.rank_folder(first.folder, rank)
        try:
            one = replay(folder, first.job, protocol.read_events(folder / protocol.EVENTS))
            one.check_times()
        except (UserError, ValueError, OSError):
            return None
        if not one.done or _blocks(one) != _blocks(first):
            return None
        found.append(one)
    return tuple(found)


def _blocks(trial: Trial) -> list[tuple[Any, ...]]:
    """Return the part of the blocks that must be equal on all ranks, because they compute every step together."""
    return [(each.input, each.phase, each.steps, each.first_step, each.epoch) for each in trial.blocks]


def of_each(trial: Trial, read_one: Callable[[Trial], Number | None]) -> list[Number] | None:
    """Return a value of every rank, by rank; None if a rank lacks it."""
    if trial.others is None:
        return None
    all_ranks: list[Trial] = [trial]
    all_ranks.extend(trial.others)
    values = [value for one in all_ranks if (value := read_one(one)) is not None]
    return values if len(values) == len(all_ranks) else None


def total(trial: Trial, read_one: Callable[[Trial], Number | None]) -> Number | None:
    """Return the sum of a value over all ranks; None if a rank lacks it."""
    values = of_each(trial, read_one)
    return sum(values[1:], values[0]) if values else None


def resident_bytes(trial: Trial) -> int | None:
    """Return the peak resident memory of all ranks together: the sum of their peaks, which need not be at the same moment."""
    return total(trial, lambda one: one.peak_resident_bytes)


def device_bytes(trial: Trial) -> int | None:
    """Return the peak memory on the devices of all ranks together; None unless each rank counts it."""
    return total(trial, lambda one: one.peak_device_bytes)


def peak_bytes(trial: Trial) -> int | None:
    """Return the peak memory of all ranks together: on the devices if the framework counts it."""
    return device_bytes(trial) or resident_bytes(trial)


def peak_of_each(trial: Trial) -> list[int] | None:
    """Return the peak memory of every rank, by rank: on its device if all ranks count it."""
    if device_bytes(trial):
        return of_each(trial, lambda one: one.peak_device_bytes)
    return of_each(trial, lambda one: one.peak_resident_bytes)
