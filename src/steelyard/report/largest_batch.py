"""The largest batches that searches found, and the headline of one search of each contender."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from steelyard.statistics.sentences import MOST_NAMED, listed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from steelyard.report.model import Contender


@dataclass(frozen=True)
class Found:
    """The batch that fitted in every search of a contender, and the one that fitted in none; 0 where a search found none."""

    largest: int
    failed: int

    def may_equal(self, other: Found) -> bool:
        """Return whether the two searches leave open whose batch is the larger one."""
        return (not other.failed or self.largest < other.failed) and (not self.failed or other.largest < self.failed)


def found(contender: Contender) -> Found:
    """Return what the searches of a contender have in common."""
    failed = [trial.job.schedule.failed_batch for trial in contender.trials]
    return Found(min(trial.batch for trial in contender.trials), max(failed) if all(failed) else 0)


def headline(contenders: Sequence[Contender]) -> str:
    """Return whose batch is the largest after one search of each contender, or between which ones that is open."""
    by_size = sorted(((found(each), each.in_text) for each in contenders), key=lambda pair: -pair[0].largest)
    best, name = by_size[0]
    open_between = [pair for pair in by_size if pair[0].may_equal(best)]
    if len(open_between) == 1:
        return f"{name} has the largest batch, {best.largest:,}, by one search of each contender."
    named = [f"{name} ({each.largest:,})" for each, name in open_between]
    who = (
        listed(named, "or")
        if len(named) <= MOST_NAMED
        else f"one of {len(named)} contenders, at least {best.largest:,}"
    )
    return f"The largest batch is that of {who}: one search of each contender does not tell them apart."
