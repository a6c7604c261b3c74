"""Ranks that do not wait for each other in every step, beside those of the same framework that do."""

from __future__ import annotations

from typing import TYPE_CHECKING

from steelyard.analysis import thresholds
from steelyard.analysis.asynchronous_ranks import speed_text, when_text
from steelyard.report.blocks import ON_TERMINAL, Heading, Panel, aside, line, plain_table
from steelyard.wording.formatted import NO_VALUE

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from steelyard.analysis.asynchronous_ranks import Beside
    from steelyard.analysis.strategies import Strategies
    from steelyard.report.blocks import Block

HEADING = "Beside ranks that wait in every step"
CAPTION = (
    "Each strategy whose ranks do not wait for each other in every step, beside the fastest of its framework whose ranks do. The "
    "speed is the time per step of those that wait divided by that of those that do not, with the 95 % interval of this pair "
    "alone. As the two do not learn the same in a step, what they have learnt stands beside it."
)


def blocks(spread: Strategies, title: str) -> Iterator[Block]:
    """Yield the part of the section on strategies; nothing where all ranks wait. `title`: that of the comparison."""
    if not spread.not_waiting:
        return
    yield Heading(HEADING, level=4)
    yield aside(CAPTION)
    yield plain_table(title, HEADING, headings(spread.not_waiting), rows(spread.not_waiting))
    yield Panel(HEADING, [line(text) for text in spread.of_not_waiting], media=ON_TERMINAL)


def headings(pairs: Sequence[Beside]) -> list[str]:
    """Return the headings of the table's columns, those about learning only if a row has values for them."""
    score = next((pair.score for pair in pairs if pair.learnt), "")
    of_learning = [f"{score} reached", "when", "by those that wait", f"{score} at the end", "of those that wait"]
    return ["contender", "ranks that wait", "speed", *(of_learning if score else [])]


def rows(pairs: Sequence[Beside]) -> list[list[str]]:
    """Return the cells of the table, one row for every contender."""
    columns = len(headings(pairs))
    return [(cells := _cells(pair)) + [NO_VALUE] * (columns - len(cells)) for pair in pairs]


def _cells(pair: Beside) -> list[str]:
    cells = [pair.contender.title, pair.waiting.case.strategy, speed_text(pair)]
    if not pair.learnt:
        return cells
    threshold = NO_VALUE if pair.threshold is None else thresholds.shown(pair.score, pair.threshold)
    when = [NO_VALUE if pair.threshold is None else when_text(one) for one in pair.learnt]
    return [*cells, threshold, *when, *(thresholds.shown(pair.score, one.last) for one in pair.learnt)]
