"""What trainings learned: the times at which they reached thresholds, and curves over all seeds."""

from __future__ import annotations

from typing import TYPE_CHECKING

from steelyard.analysis import trainings
from steelyard.analysis.learning_curves import learning
from steelyard.report.blocks import ON_TERMINAL, Panel, Plots, Strong, aside, line, plain_table
from steelyard.report.plots import learning_curves

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from steelyard.analysis.learning_curves import Learning
    from steelyard.report.blocks import Block
    from steelyard.report.sections.subject import Subject

HEADING = "Learning curves"
THRESHOLDS = "Time to thresholds"
READING = (
    "Time of training until half of the trainings have reached a value of the test metric, the epoch in which they have, and how "
    "many of them did"
)
MEAN = "; at last the same of the mean over these values, training by training"


def blocks(subject: Subject) -> Sequence[Block]:
    """Return the section, with the trainings of all seeds in the first comparison of these; nothing without whole epochs."""
    found = learning(trainings.of_all_seeds(subject.comparison, subject.among))
    if not found:
        return []
    several = len(found.seeds) > 1
    panels = [Panel(HEADING + (f" of {len(found.seeds)} seeds" if several else ""), list(_on_page(found, subject)))]
    if found.rows:
        of_seeds = f" of {len(found.seeds)} seeds" if several else ""
        panels.append(Panel(THRESHOLDS + of_seeds, list(_on_terminal(found)), media=ON_TERMINAL))
    return panels


def _on_page(found: Learning, subject: Subject) -> Iterator[Block]:
    comparison, styles = subject.comparison, subject.styles
    yield aside(found.basis)
    if found.rows:
        yield aside(f"{READING}{MEAN if len(found.headings) > 1 else ''}. {found.note}")
        signs = [styles[row.variant] for row in found.rows]
        yield plain_table(comparison.title, THRESHOLDS, *_table("contender", found), signs=signs)
    yield Plots(lambda: learning_curves.figures_of(found, styles))


def _on_terminal(found: Learning) -> Iterator[Block]:
    yield plain_table("", "", *_table("framework", found), media=ON_TERMINAL)
    yield line(Strong(found.sentence))
    yield from (line(sentence) for sentence in (found.otherwise, found.basis, found.note) if sentence)


def _table(first: str, found: Learning) -> tuple[list[str], list[list[str]]]:
    return [first, *found.headings], [[row.title, *row.cells] for row in found.rows]
