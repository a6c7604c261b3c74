"""The sections of a page and of what a terminal shows: each turns what `analysis` knows into blocks.

A new section is one file in `analysis`, one here, and its line in `OF_COMPARISON`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from steelyard.report.sections import graphs, learning_curves, setting_effects

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from steelyard.report.blocks import Block
    from steelyard.report.sections.subject import Subject

OF_COMPARISON: dict[str, Callable[[Subject], Sequence[Block]]] = {
    "setting effects": setting_effects.blocks,
    "graphs": graphs.blocks,
    "learning": learning_curves.blocks,
}
"""The sections of a comparison, by name, in their order."""
