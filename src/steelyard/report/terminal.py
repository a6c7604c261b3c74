"""The result of a run on a terminal, or as JSON."""

from __future__ import annotations

import json
import math
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from steelyard.report import columns, formatting, notices, sections
from steelyard.results.quantities import STEP_TIME

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from steelyard.report.columns import Column
    from steelyard.report.model import Comparison, Contender, View
    from steelyard.results.quantities import Quantity
    from steelyard.statistics.verdicts import Verdict

COLOURS = {"certified": "green", "rejected": "bold red", "none": "yellow"}
SEVERITIES = {"error": "bold red", "warning": "yellow", "note": "dim"}


def show(found: View, as_json: bool = False) -> None:
    """Print the result of a run."""
    if as_json:
        print(json.dumps(as_dict(found), indent=1, allow_nan=False))
        return
    from rich.console import Console

    print_view(Console(highlight=False), found)


def print_view(console: Console, view: View) -> None:
    """Print tables, verdicts and warnings."""
    if view.quantity is not STEP_TIME:
        console.print(f"\n{formatting.basis(view.quantity)} {formatting.RULE}", markup=False)
    for comparison in view.comparisons:
        _print_comparison(console, comparison)
    _print_warnings(console, view)


def _print_comparison(console: Console, comparison: Comparison) -> None:
    from rich.text import Text

    console.print()
    console.rule(
        Text(f"{comparison.title}, {comparison.group}", style="bold"), align="left", characters="─", style="dim"
    )
    console.print(Text(formatting.describe(comparison), style="dim"))
    for source in comparison.rankings:
        console.print()
        console.print(Text(formatting.INPUTS[source], style="bold"))
        console.print(_table(comparison, source, columns.shown(comparison.quantity, console.width)))
        console.print(
            Text.assemble(
                (formatting.headline(comparison, source), "bold"), " ", formatting.verdict(comparison, source)
            )
        )
    _print_remarks(console, comparison)


def _print_remarks(console: Console, comparison: Comparison) -> None:
    from rich.text import Text

    known = [(contender.title, contender.settings) for contender in comparison.contenders]
    settings = [(title, f"set to {knobs}.") for title, knobs in known if knobs]
    missing = [
        (title, reason if reason.startswith("Failed") else f"Not measured. {reason}")
        for title, reason in sections.missing(comparison)
    ]
    remarks = [*missing, *settings, *comparison.remarks]
    if remarks:
        console.print()
    for title, remark in remarks:
        console.print(Text(f"{title}: {remark}", style="dim"))


def _table(comparison: Comparison, source: str, shown: list[Column]) -> Table:
    """Return a table with two lines per row: the value, and below it the interval."""
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="dim", padding=(0, 2, 0, 0))
    table.add_column("framework\nversion, mode", min_width=17)
    for column in shown:
        table.add_column(column.heading.replace(" ", "\n", 1), no_wrap="throughput" not in column.heading)
    for contender in comparison.contenders:
        if source in contender.standings:
            table.add_row(_name(contender), *(_cell(column, comparison, contender, source) for column in shown))
    return table


def _name(contender: Contender) -> Text:
    from rich.text import Text

    return Text.assemble(
        (contender.title, "bold"), "\n", (", ".join(filter(None, (contender.version, contender.mode))), "dim")
    )


def _cell(column: Column, comparison: Comparison, contender: Contender, source: str) -> Text:
    from rich.text import Text

    value = column.format(comparison, contender, source)
    uncertified = contender.proof.state != "certified"
    style = COLOURS[contender.proof.state] if column.heading == "certified" else "dim" if uncertified else ""
    return Text.assemble((value.value, style), "\n", (value.interval, "dim"))


def _print_warnings(console: Console, view: View) -> None:
    """Print each kind of warning once, with its subjects, its sentence and its advice."""
    from rich.table import Table
    from rich.text import Text

    console.print()
    for notice in notices.gather(view.warnings):
        grid = Table.grid(padding=(0, 1))
        for finding in notice.findings:
            sentence = Text(f"{'; '.join(finding.subjects)}: {finding.sentence}")
            grid.add_row(Text(notice.severity, SEVERITIES[notice.severity]), sentence)
        grid.add_row("", Text(notice.advice, "dim"))
        console.print(grid)
    if view.warnings:
        console.print()


def as_dict(view: View) -> dict[str, Any]:
    """Return the result as plain values for scripts. Values that are not finite become None."""
    found = {
        "run": view.name,
        "study": view.record.study,
        "created": view.record.created,
        "state": view.record.state,
        "method": view.record.method,
        "machine": view.record.machine,
        "noise": view.noise.to_dict(),
        "comparisons": [_comparison_dict(comparison) for comparison in view.comparisons],
        "warnings": [asdict(warning) for warning in view.warnings],
        "folder": str(view.folder),
    }
    if view.quantity is not STEP_TIME:
        found["quantity"] = _quantity_dict(view.quantity)
    plain: dict[str, Any] = _finite(found)
    return plain


def _quantity_dict(quantity: Quantity) -> dict[str, Any]:
    facts = {name: getattr(quantity, name) for name in ("name", "unit", "more_is_better")}
    return {**facts, "decision": formatting.RULE}


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _finite(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _comparison_dict(comparison: Comparison) -> dict[str, Any]:
    return {
        "group": comparison.group,
        "unit": comparison.unit,
        "primary": comparison.primary,
        "headlines": {source: formatting.headline(comparison, source) for source in comparison.rankings},
        "sentences": {source: formatting.verdict(comparison, source) for source in comparison.rankings},
        "verdicts": {
            source: [_verdict_dict(comparison, verdict) for verdict in ranking.verdicts]
            for source, ranking in comparison.rankings.items()
        },
        "contenders": [_contender_dict(comparison, contender) for contender in comparison.contenders],
        "skipped": [asdict(each) for each in comparison.skipped],
    }


def _verdict_dict(comparison: Comparison, verdict: Verdict) -> dict[str, Any]:
    names = {contender.case.id: f"{comparison.group}/{contender.variant}" for contender in comparison.contenders}
    ratio = comparison.quantity.ratio(verdict)
    values = {"ratio": ratio.value, "low": ratio.low, "high": ratio.high, "a": names[verdict.a], "b": names[verdict.b]}
    return asdict(verdict) | values


def _contender_dict(comparison: Comparison, contender: Contender) -> dict[str, Any]:
    standings = {source: asdict(standing) for source, standing in contender.standings.items()}
    return {
        "case": f"{comparison.group}/{contender.variant}",
        "id": contender.case.id,
        "title": contender.title,
        "version": contender.version,
        "mode": contender.mode,
        "certificate": contender.proof.state,
        "certificate_sentence": contender.proof.sentence,
        "speeds": {source: asdict(speed) for source, speed in contender.speeds.items()},
        "first_step_ns": contender.first_step_ns,
        "to_first_step_ns": contender.to_first_step_ns,
        "peak_resident_bytes": contender.peak_resident_bytes,
        "peak_device_bytes": contender.peak_device_bytes,
        "evaluation": asdict(contender.evaluation) if contender.evaluation else None,
        "failure": contender.failure,
        "settings": contender.applied,
        "libraries": contender.libraries,
        **({} if comparison.quantity is STEP_TIME else {"standings": standings}),
    }
