"""The missing parts of a comparison: cells that were not measured, and contenders that failed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from steelyard.analysis.model import Comparison, Contender


@dataclass(frozen=True)
class Reason:
    """Why something is missing. `skipped`: it was not measured at all."""

    title: str
    text: str
    skipped: bool


def reasons(comparison: Comparison) -> list[Reason]:
    """Return why cells were skipped, and how contenders failed."""
    skipped = [Reason(cell.title, cell.reason, skipped=True) for cell in comparison.skipped]
    return skipped + [
        Reason(contender.title, _failure(contender), skipped=False)
        for contender in comparison.contenders
        if contender.failure
    ]


def _failure(contender: Contender) -> str:
    finished = len(contender.trials)
    shown = "process is shown but not used" if finished == 1 else "processes are shown but not used"
    return f"Failed. {contender.failure}." + (f" Its {finished} finished {shown} in any verdict." if finished else "")
