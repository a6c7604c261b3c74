"""Verdicts: for each input a sentence, a table and a plot of ratios."""

from __future__ import annotations

from typing import TYPE_CHECKING

from steelyard.analysis import headlines, summaries
from steelyard.analysis.summaries import MOST_CLAUSES
from steelyard.report.blocks import (
    EVERYWHERE,
    ON_DISPLAYS,
    ON_SCREEN,
    Fold,
    Panel,
    Paragraph,
    Plots,
    Role,
    Strong,
    Terms,
    line,
)
from steelyard.report.columns import ranked_by
from steelyard.report.plots import forest
from steelyard.report.plots.ratio_bars import ratio_bars
from steelyard.report.sections import contender_tables

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from steelyard.analysis.model import Contender
    from steelyard.report.blocks import Block
    from steelyard.report.figures import Figure
    from steelyard.report.sections.subject import Subject


def blocks(subject: Subject) -> Sequence[Block]:
    """Return the section: a panel for each input, of which paper shows the first."""
    return [
        Panel(
            headlines.heading(subject.comparison, source),
            list(_content(subject, source)),
            terms=True,
            media=ON_DISPLAYS if place else EVERYWHERE,
        )
        for place, source in enumerate(subject.comparison.rankings)
    ]


def _content(subject: Subject, source: str) -> Iterator[Block]:
    comparison = subject.comparison
    contenders = [contender for contender in comparison.contenders if source in contender.standings]
    columns = ranked_by(comparison.quantity, comparison.task)
    above = _stands_above(subject, source)
    if not above:
        yield from _sentences(subject, source)
    yield contender_tables.on_page(
        subject, headlines.heading(comparison, source), contenders, columns, source, linked=True
    )
    yield contender_tables.on_terminal(subject, contenders, columns, source)
    yield from _lines(subject, source)
    if contenders and not (above and _all_drawn_above(subject, source, contenders)):
        yield Plots(lambda: _plots(subject, source))


def _stands_above(subject: Subject, source: str) -> bool:
    """Return whether the top of the page already says which contender is the best on this input."""
    summary = summaries.of_comparison(subject.comparison, subject.among)
    above = summary.headlines if summary else []
    return source == subject.comparison.primary and headlines.headline(subject.comparison, source) in above


def _all_drawn_above(subject: Subject, source: str, contenders: Sequence[Contender]) -> bool:
    """Return whether the drawing at the top of the page has all of these contenders, so that the plot would say the same."""
    drawing = ratio_bars(subject.comparison, source, subject.styles)
    return drawing is not None and len(drawing.bars) == len(contenders)


def _sentences(subject: Subject, source: str) -> Iterator[Block]:
    """Yield the verdict of the page, with the first of many comparisons; the others are in a fold."""
    comparison = subject.comparison
    clauses = summaries.clauses(comparison, source)
    first, further = "; ".join(clauses[:MOST_CLAUSES]), clauses[MOST_CLAUSES:]
    headline, advice = headlines.headline(comparison, source), comparison.advice[source]
    parts = (Strong(headline), " ", Terms(first), ". " if first else "", Terms(advice))
    yield Paragraph(parts, Role.FINDING, media=ON_SCREEN)
    if further:
        rest = Paragraph((f"{'; '.join(further)}.",), Role.FINDING, terms=True)
        yield Fold(f"{summaries.FURTHER}: {len(further)}", [rest])


def _lines(subject: Subject, source: str) -> Iterator[Block]:
    """Yield the verdict of the terminal."""
    comparison = subject.comparison
    verdict = headlines.below_headline(comparison, source)
    yield line(Strong(headlines.headline(comparison, source)), f" {verdict}" if verdict else "")
    if advice := comparison.advice[source]:
        yield line(advice)


def _plots(subject: Subject, source: str) -> list[Figure]:
    ratios = forest.figure(subject.comparison, source, subject.styles)
    return [ratios] if ratios else []
