"""The sections of a page and of what a terminal shows: each turns what `analysis` knows into blocks.

A new section is one file in `analysis`, one here, and its line in `OF_COMPARISON`, or in `OF_RUN` if it is about a whole run.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING

from steelyard.report.blocks import EVERYWHERE, Fold
from steelyard.report.blocks import figures as figures_in
from steelyard.report.sections import (
    certificates,
    confusion_matrices,
    documents,
    energy,
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
    money,
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

    from steelyard.analysis.model import Comparison, View
    from steelyard.report.blocks import Block
    from steelyard.report.figures import Figure


@dataclass(frozen=True)
class ComparisonSection:
    """A section of a comparison. `fold`: the title of the fold that holds it on the page; empty where it is always open."""

    blocks: Callable[[Subject], Sequence[Block]]
    fold: str = ""


WHY, START, LEARNING, STEPS = "Why one takes longer", "Start, memory and energy", "Learning", "Times and rounds"
CONFUSION = "Confusion matrices: which class was taken for which"
OF_COMPARISON = (
    ComparisonSection(verdicts.blocks),
    ComparisonSection(strategies.blocks),
    ComparisonSection(rank_exchange.blocks),
    ComparisonSection(setting_effects.blocks),
    ComparisonSection(money.blocks),
    ComparisonSection(what_to_choose.blocks),
    ComparisonSection(where_time_goes.blocks, WHY),
    ComparisonSection(machine_limits.blocks, WHY),
    ComparisonSection(graphs.blocks, WHY),
    ComparisonSection(memory_by_phase.blocks, START),
    ComparisonSection(start_and_memory.blocks, START),
    ComparisonSection(job_length.blocks, START),
    ComparisonSection(energy.blocks, START),
    ComparisonSection(epochs.blocks, LEARNING),
    ComparisonSection(learning_curves.blocks, LEARNING),
    ComparisonSection(confusion_matrices.blocks, CONFUSION),
    ComparisonSection(further_plots.blocks, STEPS),
    ComparisonSection(exported_networks.blocks),
    ComparisonSection(incomplete.blocks),
)
"""The sections of a comparison, in their order."""
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


def folded(subject: Subject) -> list[Block]:
    """Return the sections of a comparison on the page; neighbours with the same fold are in it.

    A fold is open where the run was asked for what it holds: profiles, graphs, or whole epochs.
    """
    found: list[Block] = []
    for fold, sections in groupby(OF_COMPARISON, key=lambda section: section.fold):
        content = [block for section in sections for block in section.blocks(subject)]
        if fold and content:
            found.append(Fold(fold, content, opened=_asked_for(fold, subject.comparison)))
        else:
            found += content
    return found


def _asked_for(fold: str, comparison: Comparison) -> bool:
    if fold == WHY:
        return any(contender.profile or contender.graphs for contender in comparison.contenders)
    return fold == LEARNING and any(contender.trains_epochs for contender in comparison.contenders)


def figures_of(view: View) -> list[Figure]:
    """Return all figures of the page of a run, in their order."""
    known = styles(view.comparisons)
    subjects = [Subject(comparison, view.comparisons, known, view.name) for comparison in view.comparisons]
    found = [figure for subject in subjects for figure in figures_in(folded(subject))]
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
