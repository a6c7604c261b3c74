"""The times of whole epochs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from steelyard.report.blocks import ON_DISPLAYS, Panel
from steelyard.report.columns import of_epochs
from steelyard.report.sections import contender_tables

if TYPE_CHECKING:
    from collections.abc import Sequence

    from steelyard.report.blocks import Block
    from steelyard.report.sections.subject import Subject

HEADING = "Whole epochs"


def blocks(subject: Subject) -> Sequence[Block]:
    """Return the section; nothing where no whole epochs were trained."""
    trained = [contender for contender in subject.comparison.contenders if contender.trains_epochs]
    if not trained:
        return []
    columns = of_epochs(trained[0].case)
    tables = [
        contender_tables.on_page(subject, HEADING, trained, columns),
        contender_tables.on_terminal(subject, trained, columns),
    ]
    return [Panel(HEADING, tables, media=ON_DISPLAYS)]
