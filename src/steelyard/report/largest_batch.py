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
    """The largest batch that fitted in every search of a contender, and the smallest that never fitted; 0 if unknown."""

    largest: int
    failed: int

    def may_equal(self, other: Found) -> bool:
        """Return whether the searches do not decide which contender has the larger batch."""
        return (not other.failed or self.largest < other.failed) and (not self.failed or other.largest < self.failed)


def found(contender: Contender) -> Found:
    """Return the combined result of a contender's searches."""
    failed = [trial.job.schedule.failed_batch for trial in contender.trials]
    return Found(min(trial.batch for trial in contender.trials), max(failed) if all(failed) else 0)


def headline(contenders: Sequence[Contender]) -> str:
    """Return the contender with the largest batch after one search of every contender, or the ones that remain possible."""
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
