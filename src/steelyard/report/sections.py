"""A view -> what the page's template fills in: plain texts in the order in which a person decides."""

from __future__ import annotations

import html
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from steelyard.report import costs, forest, losses, series, stability, words
from steelyard.report.columns import COLUMNS

if TYPE_CHECKING:
    from steelyard.report.columns import Column
    from steelyard.report.figures import Figure
    from steelyard.report.model import Comparison, Contender
    from steelyard.report.styles import Style
    from steelyard.report.words import Told


@dataclass(frozen=True)
class Row:
    """One contender in a verdict table."""

    style: Style
    title: str
    build: str
    state: str
    figures: list[tuple[Column, Told]]


@dataclass(frozen=True)
class Input:
    """One input of a workload: its verdict, its table and its forest plot."""

    heading: str
    headline: str
    clauses: list[str]
    rows: list[Row]
    forest: Figure | None


@dataclass(frozen=True)
class Workload:
    """One comparison on the page. `missing`: (who, why) of what was not measured, or not to the end."""

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
    """Return what a comparison has to say; its `verdict` is the one on the deciding input."""
    inputs = {source: _input(comparison, source, styles) for source in comparison.rankings}
    nothing = Input("", "Nothing was measured.", [], [], None)
    each = (series.step_times, stability.rounds)
    drawn = [draw(comparison, source, styles) for draw in each for source in comparison.rankings]
    drawn += [losses.figure(comparison, styles), costs.start(comparison), costs.memory(comparison, styles)]
    return Workload(
        anchor=re.sub(r"\W+", "-", comparison.group),
        title=comparison.title,
        group=comparison.group,
        description=words.describe(comparison),
        verdict=inputs.get(comparison.primary, nothing),
        inputs=list(inputs.values()),
        figures=[figure for figure in drawn if figure],
        missing=missing(comparison),
        remarks=list(comparison.remarks),
    )


def missing(comparison: Comparison) -> list[tuple[str, str]]:
    """Return (framework, reason) of what was skipped, and of processes that failed."""
    found = [(each.title, each.reason) for each in comparison.skipped]
    return found + [(contender.title, _failure(contender)) for contender in comparison.contenders if contender.failure]


def _failure(contender: Contender) -> str:
    kept = len(contender.trials)
    shown = "process is shown and takes" if kept == 1 else "processes are shown and take"
    return f"Failed. {contender.failure}." + (f" Its {kept} finished {shown} part in no verdict." if kept else "")


def _input(comparison: Comparison, source: str, styles: dict[str, Style]) -> Input:
    measured = [contender for contender in comparison.contenders if source in contender.speeds]
    rows = [_row(comparison, contender, source, styles[contender.variant]) for contender in measured]
    clauses = [clause.rstrip(".") for clause in words.verdict(comparison, source).split("; ")]
    return Input(
        words.INPUTS[source],
        words.headline(comparison, source),
        clauses,
        rows,
        forest.figure(comparison, source, styles),
    )


def _row(comparison: Comparison, contender: Contender, source: str, style: Style) -> Row:
    told = [(column, column.tell(comparison, contender, source)) for column in COLUMNS]
    return Row(style, contender.title, words.build(contender), contender.proof.state, told)


def brackets(sentence: str) -> str:
    """Return a sentence as HTML with its intervals set apart, everything else escaped."""
    return re.sub(r"\[[^\[\]]*\]", r'<span class="span">\g<0></span>', html.escape(sentence))
