"""The verdict table on a terminal, or the same as JSON."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from steelyard import report
from steelyard.report import words
from steelyard.store import Store

if TYPE_CHECKING:
    from pathlib import Path

    from rich.table import Table

    from steelyard.report.model import Comparison, Contender, View

MARKS = {"certified": "[green]certified[/]", "rejected": "[red]REJECTED[/]", "none": "[yellow]none[/]"}
SEVERITIES = {"error": "red", "warning": "yellow", "note": "dim"}


def show(folder: Path, as_json: bool = False) -> None:
    """Print a run's result."""
    store = Store(folder.parent)
    found = report.view(folder, store)
    if as_json:
        print(json.dumps(as_dict(found), indent=1))
        return
    from rich.console import Console

    console = Console(highlight=False)
    for comparison in found.comparisons:
        _show_comparison(console, comparison)
    _show_warnings(console, found)


def _show_comparison(console: Any, comparison: Comparison) -> None:
    from rich.markup import escape

    console.print()
    console.print(f"[bold]{comparison.title}[/] {comparison.group}: {escape(words.describe(comparison))}")
    for source in comparison.rankings:
        console.print()
        console.print(f"[bold]{words.INPUTS[source]}[/]")
        console.print(_table(comparison, source, wide=console.width >= 120))
        console.print(escape(words.verdict(comparison, source)))
    for gap in comparison.gaps:
        console.print(f"[dim]{gap.environment}: not measured. {escape(gap.reason)}[/]")


def _table(comparison: Comparison, source: str, wide: bool) -> Table:
    from rich.table import Table

    columns = [heading for heading, _, needs_width in COLUMNS if wide or not needs_width]
    table = Table(*columns, box=None, pad_edge=False, header_style="dim")
    for column in table.columns[2:]:
        column.justify = "right"
    for contender in comparison.contenders:
        if source in contender.speeds or contender.failure:
            table.add_row(*(cell(comparison, contender, source) for _, cell, needs_width in COLUMNS if wide or not needs_width))
    return table


def _certificate(comparison: Comparison, contender: Contender, source: str) -> str:  # noqa: ARG001
    return MARKS[contender.proof.state]


COLUMNS = (
    ("framework", lambda c, x, s: f"[bold]{x.title}[/]", False),
    ("version, mode", lambda c, x, s: f"{x.version}, {x.mode}", False),
    ("median step", lambda c, x, s: words.median(x, s), False),
    ("mean [95 % interval]", lambda c, x, s: words.location(x, s), False),
    ("throughput", lambda c, x, s: words.throughput(x, s, c.unit), True),
    ("times the fastest", lambda c, x, s: words.ratio(x, s), False),
    ("first step", lambda c, x, s: words.seconds(x.first_step_ns), True),
    ("peak memory", lambda c, x, s: words.memory(x), True),
    ("accuracy", lambda c, x, s: words.accuracy(x), True),
    ("certificate", _certificate, False),
)


def _show_warnings(console: Any, view: View) -> None:
    from rich.markup import escape

    if view.warnings:
        console.print()
    for warning in view.warnings:
        colour = SEVERITIES[warning.severity]
        console.print(f"[{colour}]{warning.severity}[/] {escape(warning.subject)}: {escape(warning.sentence)} [dim]{escape(warning.advice)}[/]")
    console.print()


def as_dict(view: View) -> dict[str, Any]:
    """Return the result as plain values: what a script would want."""
    return {
        "run": view.name, "study": view.record.study, "created": view.record.created, "method": view.record.method,
        "machine": view.record.machine, "noise": view.noise.to_dict(),
        "comparisons": [_comparison_dict(comparison) for comparison in view.comparisons],
        "warnings": [asdict(warning) for warning in view.warnings], "folder": str(view.folder),
    }  # fmt: skip


def _comparison_dict(comparison: Comparison) -> dict[str, Any]:
    return {
        "group": comparison.group, "unit": comparison.unit, "primary": comparison.primary,
        "sentences": comparison.sentences,
        "verdicts": {source: [asdict(verdict) for verdict in ranking.verdicts] for source, ranking in comparison.rankings.items()},
        "contenders": [_contender_dict(contender) for contender in comparison.contenders],
        "gaps": [asdict(gap) for gap in comparison.gaps],
    }  # fmt: skip


def _contender_dict(contender: Contender) -> dict[str, Any]:
    return {
        "cell": contender.cell.key, "title": contender.title, "version": contender.version, "mode": contender.mode,
        "certificate": contender.proof.state, "certificate_sentence": contender.proof.sentence,
        "speeds": {source: asdict(speed) for source, speed in contender.speeds.items()},
        "first_step_ns": contender.first_step_ns, "to_first_step_ns": contender.to_first_step_ns,
        "peak_resident_bytes": contender.peak_resident_bytes, "peak_device_bytes": contender.peak_device_bytes,
        "accuracy": contender.accuracy, "accuracy_steps": contender.accuracy_steps, "failure": contender.failure,
        "settings": contender.applied, "libraries": contender.libraries,
    }  # fmt: skip
