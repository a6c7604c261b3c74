"""What the sections of a comparison are about."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from steelyard.analysis.model import Comparison
    from steelyard.report.styles import Styles


@dataclass(frozen=True)
class Subject:
    """A comparison, all comparisons of its run in order, the styles of their contenders, and the name of the run for commands."""

    comparison: Comparison
    among: Sequence[Comparison]
    styles: Styles
    run: str = ""
