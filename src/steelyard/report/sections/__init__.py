"""The sections of a page and of what a terminal shows: each turns what `analysis` knows into blocks.

A new section is one file in `analysis`, one here, and its line in `OF_COMPARISON`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from steelyard.report.sections import (
    graphs,
    job_length,
    learning_curves,
    machine_limits,
    setting_effects,
    start_and_memory,
    what_to_choose,
    where_time_goes,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from steelyard.report.blocks import Block
    from steelyard.report.sections.subject import Subject

OF_COMPARISON: dict[str, Callable[[Subject], Sequence[Block]]] = {
    "setting effects": setting_effects.blocks,
    "machine limits": machine_limits.blocks,
    "what to choose": what_to_choose.blocks,
    "where the time goes": where_time_goes.blocks,
    "graphs": graphs.blocks,
    "job length": job_length.blocks,
    "learning": learning_curves.blocks,
    "start and memory": start_and_memory.blocks,
}
"""The sections of a comparison, by name, in their order."""
