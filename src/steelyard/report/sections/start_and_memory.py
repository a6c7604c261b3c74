"""What contenders cost apart from the time of steps: the time before the second step, and peak memory. Plots only."""

from __future__ import annotations

from typing import TYPE_CHECKING

from steelyard.report.blocks import Plots
from steelyard.report.plots import start_and_memory

if TYPE_CHECKING:
    from collections.abc import Sequence

    from steelyard.report.blocks import Block
    from steelyard.report.sections.subject import Subject


def blocks(subject: Subject) -> Sequence[Block]:
    """Return the section; nothing where neither was recorded."""
    plots = start_and_memory.figures_of(subject.comparison, subject.styles)
    return [Plots(plots)] if plots else []
