"""A view -> what the page's template fills in: plain texts in the order in which a person decides."""

from __future__ import annotations

import html
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from steelyard import frameworks
from steelyard.report import costs, forest, losses, series, words
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


def workload(comparison: Comparison, styles: dict[str, Style]) -> Workload | None:
    """Return what a comparison has to say; its `verdict` is the one on the deciding input."""
    inputs = {source: _input(comparison, source, styles) for source in comparison.rankings}
    nothing = Input("", "Nothing was measured.", [], [], None)
    drawn = [draw(comparison, source, styles) for draw in (series.step_times, costs.rounds) for source in comparison.rankings]
    drawn += [draw(comparison, styles) for draw in (losses.figure, costs.start, costs.memory)]
    return Workload(
        anchor=re.sub(r"\W+", "-", comparison.group), title=comparison.title, group=comparison.group, description=words.describe(comparison),
        verdict=inputs.get(comparison.primary, nothing), inputs=list(inputs.values()), figures=[figure for figure in drawn if figure],
        missing=missing(comparison), remarks=remarks(comparison),
    )  # fmt: skip


def missing(comparison: Comparison) -> list[tuple[str, str]]:
    """Return (who, why) of gaps and of processes that failed."""
    found = [(frameworks.framework(gap.environment.partition("@")[0]).title, gap.reason) for gap in comparison.gaps]
    return found + [(contender.title, _failure(contender)) for contender in comparison.contenders if contender.failure]


def remarks(comparison: Comparison) -> list[tuple[str, str]]:
    """Return (framework, what is known against it), such as that it is retired."""
    known = {contender.cell.framework: frameworks.framework(contender.cell.framework) for contender in comparison.contenders}
    return [(framework.title, framework.note) for framework in known.values() if framework.note]


def _failure(contender: Contender) -> str:
    kept = len(contender.trials)
    said = f" Its {kept} finished {'process is' if kept == 1 else 'processes are'} shown and {'takes' if kept == 1 else 'take'} part in no verdict."
    return f"Failed. {contender.failure}." + (said if kept else "")


def _input(comparison: Comparison, source: str, styles: dict[str, Style]) -> Input:
    measured = [contender for contender in comparison.contenders if source in contender.speeds]
    rows = [_row(comparison, contender, source, styles[contender.cell.arm]) for contender in measured]
    clauses = [clause.rstrip(".") for clause in words.verdict(comparison, source).split("; ")]
    return Input(words.INPUTS[source], words.headline(comparison, source), clauses, rows, forest.figure(comparison, source, styles))


def _row(comparison: Comparison, contender: Contender, source: str, style: Style) -> Row:
    told = [(column, column.tell(comparison, contender, source)) for column in COLUMNS]
    return Row(style, contender.title, words.build(contender), contender.proof.state, told)


def tables(values: dict[str, Any]) -> list[tuple[str, list[str], list[list[str]]]]:
    """Return (name, headings, rows) of those values that are lists of records with equal keys."""
    found = [(name, rows) for name, rows in values.items() if _is_table(rows)]
    return [(name, list(rows[0]), [[text(value) for value in row.values()] for row in rows]) for name, rows in found]


def untabled(values: dict[str, Any]) -> dict[str, Any]:
    """Return the values that are no tables and say something."""
    return {name: value for name, value in values.items() if not _is_table(value) and value not in (None, "", (), [], {})}


def _is_table(rows: Any) -> bool:
    return isinstance(rows, list) and bool(rows) and all(isinstance(row, dict) and list(row) == list(rows[0]) for row in rows)


def facts(values: Any, prefix: str = "") -> list[tuple[str, str]]:
    """Return nested values as (dotted name, text), in order."""
    if isinstance(values, dict):
        return [fact for name, value in values.items() for fact in facts(value, f"{prefix}.{name}" if prefix else str(name))]
    if isinstance(values, (list, tuple)) and any(isinstance(value, dict) for value in values):
        return [fact for place, value in enumerate(values, 1) for fact in facts(value, f"{prefix} {place}")]
    return [(prefix, text(values))]


def host_facts(host: dict[str, Any]) -> list[tuple[str, str]]:
    """Return what is known of a machine, sizes in units a person reads."""
    known = facts({name: value for name, value in host.items() if name != "unknown"})
    told = [(name, f"{int(value) / 2**20:,.4g} MiB" if value.isdigit() and ("bytes" in name or "caches" in name) else value) for name, value in known]
    return [(name.replace("_bytes", "").replace("_", " ").replace(".", " "), value) for name, value in told if value != "not known"]


def text(value: Any) -> str:
    """Return one value as a person would write it."""
    if isinstance(value, bool) or value is None:
        return {True: "yes", False: "no", None: "not known"}[value]
    if isinstance(value, (list, tuple)):
        return ", ".join(map(text, value)) or "none"
    if isinstance(value, float):
        return f"{value:.6g}"
    return str(value) or "none"


def brackets(sentence: str) -> str:
    """Return a sentence as HTML with its intervals set apart, everything else escaped."""
    return re.sub(r"\[[^\[\]]*\]", r'<span class="span">\g<0></span>', html.escape(sentence))
