"""Values over all ranks of a trial."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

    from steelyard.results.trials import Trial

Number = TypeVar("Number", int, float)


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
