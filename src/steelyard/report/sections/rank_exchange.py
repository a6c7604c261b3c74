"""What ranks exchange: a table on the page, a line for each contender on the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from steelyard.analysis import rank_exchange
from steelyard.report.blocks import ON_DISPLAYS, ON_SCREEN, Panel, Strong, aside, line
from steelyard.report.sections import contender_tables
from steelyard.report.sections.rank_exchange_columns import columns
from steelyard.wording.notation import data_size

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from steelyard.analysis.rank_exchange import Exchanged
    from steelyard.report.blocks import Block
    from steelyard.report.sections.subject import Subject

HEADING = "What ranks exchange"
CAPTION = (
    "The gradients are {size}, one float32 for each of {count} trainable numbers. What connections carried was counted in the "
    "measured steps; an all-reduce of a buffer of this size was timed after the rounds, by as many ranks that do nothing else."
)


def blocks(subject: Subject) -> Sequence[Block]:
    """Return the section; nothing if no training was spread over processes, or the record has no counters."""
    rows = rank_exchange.exchanges(subject.comparison)
    if not rows:
        return []
    lines = [line(text) for row in rows if (text := rank_exchange.line(row, subject.comparison))]
    return [Panel(HEADING, [*_on_page(rows, subject), *lines], media=ON_DISPLAYS if lines else ON_SCREEN)]


def _on_page(rows: Sequence[Exchanged], subject: Subject) -> Iterator[Block]:
    comparison = subject.comparison
    size = data_size(rank_exchange.gradients_bytes(comparison))
    yield aside(CAPTION.format(size=size, count=f"{comparison.parameters:,}"))
    contenders = [row.contender for row in rows]
    table = contender_tables.on_page(subject, HEADING, contenders, columns(rows), comparison.primary)
    yield table
    yield contender_tables.how_to_read(table)
    for row in rows:
        if reason := rank_exchange.why_not(row):
            yield aside(Strong(row.contender.title), f": {reason}")
