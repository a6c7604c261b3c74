"""Every plot of the page as PDF."""

from __future__ import annotations

from typing import TYPE_CHECKING

from steelyard.exports import plots

if TYPE_CHECKING:
    from pathlib import Path

    from steelyard.analysis.model import View


def write(view: View, folder: Path) -> list[Path]:
    """Write the plots and their captions; returns the files. UserError: matplotlib is not installed."""
    return plots.write(view, folder, "pdf")
