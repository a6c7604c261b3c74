"""Which class was taken for which."""

from __future__ import annotations

from typing import TYPE_CHECKING

from steelyard.report.blocks import Plots
from steelyard.report.plots import confusion
from steelyard.results import confusions

if TYPE_CHECKING:
    from collections.abc import Sequence

    from steelyard.report.blocks import Block
    from steelyard.report.sections.subject import Subject


def blocks(subject: Subject) -> Sequence[Block]:
    """Return the section; nothing where no predictions are recorded, or of many classes."""
    comparison = subject.comparison
    if all(confusions.matrix(contender.trials) is None for contender in comparison.contenders):
        return []
    return [Plots(lambda: confusion.plots(comparison))]
