"""`steelyard doctor`: check whether this machine is suitable for measurements."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import argparse

MARKS = {"ok": "[green]ok  [/]", "warn": "[yellow]note[/]", "bad": "[red]bad [/]"}


def execute(arguments: argparse.Namespace) -> int:
    """Print the findings; the exit code is 1 if something prevents measuring."""
    from steelyard.measure.doctor import examine

    findings = examine()
    if arguments.json:
        print(json.dumps([asdict(finding) for finding in findings], indent=1))
    else:
        _print(findings)
    return int(any(finding.state == "bad" for finding in findings))


def _print(findings: list) -> None:  # type: ignore[type-arg]
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    table = Table(box=None, pad_edge=False, show_header=False)
    for finding in findings:
        text = escape(finding.sentence) + (f"\n[dim]{escape(finding.advice)}[/]" if finding.advice else "")
        table.add_row(MARKS[finding.state], f"[bold]{escape(finding.name)}[/]", text)
    Console().print(table)
