"""The exchange between ranks: in counted steps, and measured by itself after the rounds, in a folder of its own."""

from __future__ import annotations

import itertools
import statistics as plain
from dataclasses import dataclass
from typing import TYPE_CHECKING

from steelyard.errors import UserError
from steelyard.results import ranks, trials
from steelyard_worker.job_kinds import COMMUNICATION, KINDS

if TYPE_CHECKING:
    from pathlib import Path

    from steelyard.results.events import Reduced
    from steelyard.results.trials import Trial

FOLDER = KINDS[COMMUNICATION].folder
COUNTED = "counted"


@dataclass(frozen=True)
class AllReduce:
    """All-reduces of a buffer as large as the gradients, by `collective` of the framework.

    ns: of one, the median over blocks; low_ns, high_ns: the smallest and the largest block. sent_bytes: for one, by rank; empty
    where that was not seen.
    """

    collective: str
    bytes: int
    ranks: int
    ns: float
    low_ns: float
    high_ns: float
    sent_bytes: tuple[float, ...]

    @property
    def bus_gbps(self) -> float:
        """The bus bandwidth in GB/s: 2 (n - 1) / n times the buffer over the time, as NVIDIA's nccl-tests define it.

        That is what every rank must at least send, and receive, where ranks exchange with each other alone.
        """
        return 2 * (self.ranks - 1) / self.ranks * self.bytes / self.ns


@dataclass(frozen=True)
class Stale:
    """The numbers of gradients that had missed 0, 1, 2, ... updates of other ranks, over all ranks."""

    missed: tuple[int, ...]

    @property
    def updates(self) -> int:
        """All updates."""
        return sum(self.missed)

    @property
    def mean(self) -> float:
        """How many updates a gradient had missed, on average."""
        return sum(missed * count for missed, count in enumerate(self.missed)) / self.updates


@dataclass(frozen=True)
class Communication:
    """A strategy's exchange by itself: exactly one of the two fields is set."""

    all_reduce: AllReduce | None = None
    stale: Stale | None = None


def folder_of(run: Path, file_name: str) -> Path:
    """Return the folder of the ranks that measured the exchange of a variant."""
    return run / FOLDER / file_name


def read(run: Path, file_name: str) -> Communication | None:
    """Return the measured exchange of a variant; None if it was not measured. UserError: it failed, or its files are damaged."""
    folder = folder_of(run, file_name)
    if not (folder / trials.JOB).exists():
        return None
    trial = trials.read(folder)
    if trial.error:
        raise UserError(trial.error[1])
    if not trial.done:
        return None
    counted = _counted(trial)
    return Communication(_joined(trial, counted)) if counted else _stale(trial)


def _stale(trial: Trial) -> Communication | None:
    if trial.others is None:
        raise UserError(
            f"The record of another rank in {trial.folder} is missing or damaged. Delete it to measure again."
        )
    of_ranks = [each.staleness.missed for each in (trial, *trial.others) if each.staleness]
    missed = tuple(map(sum, itertools.zip_longest(*of_ranks, fillvalue=0)))
    return Communication(stale=Stale(missed)) if any(missed) else None


def _counted(trial: Trial) -> list[Reduced]:
    return [each for each in trial.reduced if each.phase == COUNTED]


def _joined(trial: Trial, counted: list[Reduced]) -> AllReduce:
    times = [each.elapsed_ns / each.calls for each in counted]
    sent = ranks.of_each(trial, _sent_per_call)
    first, *_ = counted
    return AllReduce(
        first.collective, first.bytes, first.processes, plain.median(times), min(times), max(times), tuple(sent or ())
    )


def _sent_per_call(trial: Trial) -> float | None:
    counted = _counted(trial)
    return _per([each.sent_bytes for each in counted], sum(each.calls for each in counted))


def sent_per_step(trial: Trial, source: str) -> list[float] | None:
    """Return the bytes that every rank sent in a counted step, by rank; None of a single process, and where it was not seen."""
    return ranks.of_each(
        trial, lambda one: _per([each.sent_bytes for each in one.counted(source)], _steps(one, source))
    )


def received_per_step(trial: Trial, source: str) -> list[float] | None:
    """Return the bytes that every rank received in a counted step, as `sent_per_step` does."""
    return ranks.of_each(
        trial, lambda one: _per([each.received_bytes for each in one.counted(source)], _steps(one, source))
    )


def _steps(trial: Trial, source: str) -> int:
    return sum(each.steps for each in trial.counted(source))


def _per(found: list[int | None], count: int) -> float | None:
    """Return the sum divided by a count; None unless all values are known."""
    known = [each for each in found if each is not None]
    return sum(known) / count if known and len(known) == len(found) else None
