"""The effect of ranks: strategies beside a single process, with the same batch and with more samples for more parts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from steelyard.analysis import formatting
from steelyard.analysis.headlines import SHORT_INPUTS
from steelyard.analysis.strategies import strategies
from steelyard.report.blocks import ON_DISPLAYS, Heading, Panel, aside, line, plain_table
from steelyard.report.sections import asynchronous_ranks, contender_tables
from steelyard.report.sections.strategy_columns import columns

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from steelyard.analysis.scaling import Weak
    from steelyard.analysis.strategies import Strategies
    from steelyard.report.blocks import Block
    from steelyard.report.sections.subject import Subject

HEADING = "What ranks bring"
CAPTION = (
    "Every row trains with the same batch of {batch} on the {input}: N parts compute one Nth of it each (strong scaling). All "
    "parts have as many threads as the single process."
)
WEAK_HEADING = "With more samples for more parts"
WEAK_CAPTION = (
    "Each part has as many samples as the single process alone (weak scaling). The overhead is 1 less the steps per second of "
    "all parts divided by those of the single process. The two were not measured in common rounds, so slow changes of the "
    "machine are not taken out."
)
WEAK_HEADINGS = ("contender", "parts", "batch", "single process", "its batch", "overhead")


def blocks(subject: Subject) -> Sequence[Block]:
    """Return the section; nothing where no training was spread."""
    spread = strategies(subject.comparison, subject.among)
    return [Panel(HEADING, list(_content(spread, subject)), media=ON_DISPLAYS)] if spread else []


def _content(spread: Strategies, subject: Subject) -> Iterator[Block]:
    comparison = subject.comparison
    yield aside(CAPTION.format(batch=comparison.batch, input=SHORT_INPUTS[comparison.primary]))
    contenders = [row.contender for row in spread.rows]
    table = contender_tables.on_page(subject, HEADING, contenders, columns(spread.rows), comparison.primary)
    yield table
    yield contender_tables.how_to_read(table)
    yield from (line(sentence) for sentence in (*spread.in_short, *spread.lines))
    if spread.weak:
        yield Heading(WEAK_HEADING, level=4)
        yield aside(WEAK_CAPTION)
        yield plain_table(comparison.title, WEAK_HEADING, WEAK_HEADINGS, [_weak_row(row) for row in spread.weak])
    yield from asynchronous_ranks.blocks(spread, comparison.title)


def _weak_row(row: Weak) -> list[str]:
    cells = (row.parts, row.batch, row.single.title, row.single_batch, formatting.of_share(row.overhead))
    return [row.contender.title, *map(str, cells)]
