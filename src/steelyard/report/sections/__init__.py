"""The sections of a page and of what a terminal shows: each turns what `analysis` knows into blocks.

A new section is one file in `analysis`, one here, and its line in `OF_COMPARISON`, or in `OF_RUN` if it is about a whole run.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from steelyard.report.blocks import EVERYWHERE
from steelyard.report.blocks import figures as figures_in
from steelyard.report.sections import (
    certificates,
    confusion_matrices,
    documents,
    epochs,
    exported_networks,
    further_plots,
    glossary,
    graphs,
    how_measured,
    incomplete,
    job_length,
    learning_curves,
    machine_limits,
    memory_by_phase,
    not_measured,
    published,
    rank_exchange,
    reproduce,
    setting_effects,
    start_and_memory,
    strategies,
    tuned,
    verdicts,
    warnings,
    what_to_choose,
    where_time_goes,
)
from steelyard.report.sections.run_subject import RunSection, RunSubject
from steelyard.report.sections.subject import Subject
from steelyard.report.styles import styles

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from steelyard.analysis.model import View
    from steelyard.report.blocks import Block
    from steelyard.report.figures import Figure

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
OF_RUN = (
    RunSection(published.HEADING, "published", published.blocks, EVERYWHERE, before=True, last=True),
    RunSection(tuned.HEADING, "search", tuned.blocks, EVERYWHERE, before=True),
    RunSection("Cells that could not be measured", "not-measured", not_measured.blocks, in_navigation=False),
    RunSection("Documents", "documents", documents.blocks, next_to="published"),
    RunSection("Certificates", "certificates", certificates.blocks),
    RunSection("Warnings", "warnings", warnings.blocks, last=True),
    RunSection("How it was measured", "setting", how_measured.blocks),
    RunSection("Reproduce", "repeat", reproduce.blocks),
    RunSection("Glossary", "glossary", glossary.blocks),
)
"""The sections of a whole run, in the order of the page."""


def figures_of(view: View) -> list[Figure]:
    """Return all figures of the page of a run, in their order."""
    known = styles(view.comparisons)
    subjects = [Subject(comparison, view.comparisons, known, view.name) for comparison in view.comparisons]
    found = [figure for subject in subjects for make in OF_COMPARISON.values() for figure in figures_in(make(subject))]
    return found + [figure for section in OF_RUN for figure in figures_in(section.blocks(RunSubject(view)))]


def on_terminal() -> list[RunSection]:
    """Return the sections of a run in the order of a terminal, where what matters most comes last."""
    return sorted(OF_RUN, key=lambda section: section.last)


def navigation(shown: Sequence[RunSection], before: bool) -> list[RunSection]:
    """Return the sections to which the navigation of a page leads before, or after, the comparisons.

    `shown`: those that the page has.
    """
    own = [each for each in shown if each.in_navigation and not each.next_to and each.before is before]
    return [link for each in own for link in (each, *(other for other in shown if other.next_to == each.anchor))]
