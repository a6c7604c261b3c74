"""A comparison -> the contents of its section of the page."""

from __future__ import annotations

import html
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from steelyard.report import costs, forest, formatting, losses, series, stability
from steelyard.report.columns import ranked_by

if TYPE_CHECKING:
    from steelyard.report.columns import Column
    from steelyard.report.figures import Figure
    from steelyard.report.formatting import Formatted
    from steelyard.report.model import Comparison, Contender
    from steelyard.report.styles import Style


@dataclass(frozen=True)
class Row:
    """One contender in a verdict table."""

    style: Style
    title: str
    build: str
    state: str
    values: list[tuple[Column, Formatted]]


@dataclass(frozen=True)
class Input:
    """One input of a workload: verdict, table and forest plot."""

    heading: str
    headline: str
    clauses: list[str]
    rows: list[Row]
    forest: Figure | None


@dataclass(frozen=True)
class Workload:
    """One comparison on the page. `missing`: (title, reason) of what was not measured or failed."""

    anchor: str
    title: str
    group: str
    description: str
    verdict: Input
    inputs: list[Input]
    figures: list[Figure]
    missing: list[tuple[str, str]]
    remarks: list[tuple[str, str]]


def workload(comparison: Comparison, styles: dict[str, Style]) -> Workload:
    """Return the section of a comparison; `verdict` belongs to the deciding input."""
    inputs = {source: _input(comparison, source, styles) for source in comparison.rankings}
    nothing = Input("", "Nothing was measured.", [], [], None)
    # A quantity with one value per process has nothing to show of single steps.
    per_input = (stability.rounds,) if comparison.quantity.per_process else (series.step_times, stability.rounds)
    figures = [make(comparison, source, styles) for make in per_input for source in comparison.rankings]
    figures += [losses.figure(comparison, styles), costs.start(comparison), costs.memory(comparison, styles)]
    return Workload(
        anchor=re.sub(r"\W+", "-", comparison.group),
        title=comparison.title,
        group=comparison.group,
        description=formatting.describe(comparison),
        verdict=inputs.get(comparison.primary, nothing),
        inputs=list(inputs.values()),
        figures=[figure for figure in figures if figure],
        missing=missing(comparison),
        remarks=list(comparison.remarks),
    )


def missing(comparison: Comparison) -> list[tuple[str, str]]:
    """Return (title, reason) of what was skipped and of contenders that failed."""
    found = [(each.title, each.reason) for each in comparison.skipped]
    return found + [(contender.title, _failure(contender)) for contender in comparison.contenders if contender.failure]


def _failure(contender: Contender) -> str:
    finished = len(contender.trials)
    shown = "process is shown but not used" if finished == 1 else "processes are shown but not used"
    return f"Failed. {contender.failure}." + (f" Its {finished} finished {shown} in any verdict." if finished else "")


def _input(comparison: Comparison, source: str, styles: dict[str, Style]) -> Input:
    measured = [contender for contender in comparison.contenders if source in contender.standings]
    rows = [_row(comparison, contender, source, styles[contender.variant]) for contender in measured]
    clauses = [clause.rstrip(".") for clause in formatting.verdict(comparison, source).split("; ")]
    return Input(
        formatting.INPUTS[source],
        formatting.headline(comparison, source),
        clauses,
        rows,
        forest.figure(comparison, source, styles),
    )


def _row(comparison: Comparison, contender: Contender, source: str, style: Style) -> Row:
    values = [(column, column.format(comparison, contender, source)) for column in ranked_by(comparison.quantity)]
    return Row(style, contender.title, formatting.build(contender), contender.proof.state, values)


def brackets(sentence: str) -> str:
    """Return a sentence as HTML, with everything escaped and its intervals in their own style."""
    return re.sub(r"\[[^\[\]]*\]", r'<span class="span">\g<0></span>', html.escape(sentence))
