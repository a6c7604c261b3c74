"""`steelyard doctor`: check this machine, or the adapter of a framework."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING

from steelyard.cli.commands import selection
from steelyard.errors import UserError
from steelyard.plan.options import Options

if TYPE_CHECKING:
    import argparse

    from steelyard.measure.doctor import Finding

MARKS = {"ok": "[green]ok  [/]", "warn": "[yellow]note[/]", "bad": "[red]bad [/]"}


def execute(arguments: argparse.Namespace) -> int:
    """Print the findings; the exit code is 1 if something is wrong."""
    findings = _adapter(arguments) if arguments.adapter else _machine(arguments)
    if arguments.json:
        print(json.dumps([asdict(finding) for finding in findings], indent=1))
    else:
        _print(findings)
    return int(any(finding.state == "bad" for finding in findings))


def _machine(arguments: argparse.Namespace) -> list[Finding]:
    from steelyard.measure.doctor import examine

    if arguments.frameworks or arguments.workloads or arguments.env:
        raise UserError("--frameworks, --workloads and --env belong to --adapter NAME. Name the adapter to be checked.")
    return examine()


def _adapter(arguments: argparse.Namespace) -> list[Finding]:
    from steelyard.console import PlainScreen
    from steelyard.measure import adapter_checks

    options = Options(
        frameworks=(arguments.adapter,), workload_folders=selection.folders_of(arguments.workloads),
        framework_folders=selection.folders_of(arguments.frameworks), external=selection.external_of(arguments.env),
        synthetic=True, threads=1, protocol="fixed:1+1",
    )  # fmt: skip
    return adapter_checks.examine(options, PlainScreen())


def _print(findings: list[Finding]) -> None:
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    table = Table(box=None, pad_edge=False, show_header=False)
    for finding in findings:
        text = escape(finding.sentence) + (f"\n[dim]{escape(finding.advice)}[/]" if finding.advice else "")
        table.add_row(MARKS[finding.state], f"[bold]{escape(finding.name)}[/]", text)
    Console().print(table)
