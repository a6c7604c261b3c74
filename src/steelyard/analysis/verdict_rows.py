"""The verdict table of a comparison as numbers: one row for each contender, best first."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from steelyard.analysis.model import Comparison, View
    from steelyard.statistics.intervals import Ratio


@dataclass(frozen=True)
class VerdictRow:
    """A contender on one input. `value`, `low`, `high`: the ranked quantity in `unit`, with its 95 % interval over processes.

    `ratio`, `ratio_low`, `ratio_high`: the value over that of the best contender; None for the best itself, and where the two
    share no round. `certificate`: certified, rejected or none. `processes`: how many were measured.
    """

    group: str
    workload: str
    input: str
    contender: str
    title: str
    version: str
    mode: str
    quantity: str
    unit: str
    value: float
    low: float
    high: float
    ratio: float | None
    ratio_low: float | None
    ratio_high: float | None
    is_best: bool
    processes: int
    certificate: str
    maintained: bool


def of_view(view: View) -> list[VerdictRow]:
    """Return the rows of all comparisons and inputs of a run, in their order on the page."""
    return [
        row for comparison in view.comparisons for source in comparison.rankings for row in rows(comparison, source)
    ]


def rows(comparison: Comparison, source: str) -> Iterator[VerdictRow]:
    """Yield the rows of one input, in the order of the ranking; contenders without a value have none."""
    ranking = comparison.rankings[source]
    for contender in comparison.contenders:
        standing = contender.standings.get(source)
        if standing is None:
            continue
        yield VerdictRow(
            comparison.group,
            comparison.title,
            source,
            contender.variant,
            contender.title,
            contender.version,
            contender.mode,
            comparison.quantity.name,
            comparison.quantity.unit,
            standing.value,
            standing.low,
            standing.high,
            *_ends(standing.ratio),
            contender.case.id == ranking.leader,
            standing.processes,
            contender.proof.state,
            contender.maintained,
        )


def _ends(ratio: Ratio | None) -> tuple[float | None, float | None, float | None]:
    return (ratio.value, ratio.low, ratio.high) if ratio else (None, None, None)
