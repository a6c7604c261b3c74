"""The sections of a page and of what a terminal shows: each turns what `analysis` knows into blocks.

A new section is one file in `analysis`, one here, and its line in `OF_COMPARISON`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from steelyard.report.sections import (
    confusion_matrices,
    epochs,
    exported_networks,
    further_plots,
    graphs,
    incomplete,
    job_length,
    learning_curves,
    machine_limits,
    memory_by_phase,
    rank_exchange,
    setting_effects,
    start_and_memory,
    strategies,
    verdicts,
    what_to_choose,
    where_time_goes,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from steelyard.report.blocks import Block
    from steelyard.report.sections.subject import Subject

OF_COMPARISON: dict[str, Callable[[Subject], Sequence[Block]]] = {
    "verdicts": verdicts.blocks,
    "epochs": epochs.blocks,
    "memory by phase": memory_by_phase.blocks,
    "strategies": strategies.blocks,
    "exchange of ranks": rank_exchange.blocks,
    "setting effects": setting_effects.blocks,
    "machine limits": machine_limits.blocks,
    "what to choose": what_to_choose.blocks,
    "where the time goes": where_time_goes.blocks,
    "graphs": graphs.blocks,
    "job length": job_length.blocks,
    "learning": learning_curves.blocks,
    "exported networks": exported_networks.blocks,
    "incomplete": incomplete.blocks,
    "further plots": further_plots.blocks,
    "start and memory": start_and_memory.blocks,
    "confusion matrices": confusion_matrices.blocks,
}
"""The sections of a comparison, by name, in their order."""
