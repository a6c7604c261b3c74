"""The peak memory of each phase of a process."""

from __future__ import annotations

from typing import TYPE_CHECKING

from steelyard.report.blocks import Panel
from steelyard.report.columns import of_phases
from steelyard.report.sections import contender_tables

if TYPE_CHECKING:
    from collections.abc import Sequence

    from steelyard.report.blocks import Block
    from steelyard.report.sections.subject import Subject

HEADING = "Peak memory by phase"


def blocks(subject: Subject) -> Sequence[Block]:
    """Return the section; nothing where no phase has a known peak."""
    comparison = subject.comparison
    known = [contender for contender in comparison.contenders if any(trial.memory for trial in contender.trials)]
    if not known:
        return []
    return [Panel(HEADING, [contender_tables.on_page(subject, HEADING, known, of_phases(comparison.task))])]
