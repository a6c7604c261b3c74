"""What contenders cost apart from the time of steps: the time before the second step, and peak memory. Plots only."""

from __future__ import annotations

from typing import TYPE_CHECKING

from steelyard.analysis.start_and_memory import start_and_memory
from steelyard.report.blocks import Plots
from steelyard.report.plots import start_and_memory as plots

if TYPE_CHECKING:
    from collections.abc import Sequence

    from steelyard.report.blocks import Block
    from steelyard.report.sections.subject import Subject


def blocks(subject: Subject) -> Sequence[Block]:
    """Return the section; nothing where neither was recorded."""
    comparison = subject.comparison
    known = start_and_memory(comparison)
    if not (known.started or known.sized):
        return []
    return [Plots(lambda: plots.figures_of(comparison, known, subject.styles))]
