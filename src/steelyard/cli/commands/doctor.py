"""`steelyard doctor`: check this machine, or the adapter of a framework."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import TYPE_CHECKING

from steelyard.cli.commands import selection
from steelyard.errors import UserError

if TYPE_CHECKING:
    import argparse

    from steelyard.measure.doctor import Finding

MARKS = {"ok": "[green]ok  [/]", "warn": "[yellow]note[/]", "bad": "[red]bad [/]"}


def execute(arguments: argparse.Namespace) -> int:
    """Print the findings; the exit code is 1 if something is wrong."""
    findings = _adapter(arguments) if arguments.adapter else _machine(arguments)
    if arguments.json:
        selection.print_json([asdict(finding) for finding in findings])
    else:
        _print(findings)
    return int(any(finding.state == "bad" for finding in findings))


def _machine(arguments: argparse.Namespace) -> list[Finding]:
    from steelyard.measure.doctor import examine

    if arguments.framework_folders or arguments.workload_folders or arguments.external:
        raise UserError("--frameworks, --workloads and --env belong to --adapter NAME. Name the adapter to be checked.")
    return examine()


def _adapter(arguments: argparse.Namespace) -> list[Finding]:
    from steelyard.console import Screen
    from steelyard.measure import adapter_checks

    asked = selection.options_of(arguments)
    options = replace(asked, frameworks=(arguments.adapter,), synthetic=True, threads=1, protocol="fixed:1+1")
    return adapter_checks.examine(options, Screen())


def _print(findings: list[Finding]) -> None:
    from rich.markup import escape

    rows = []
    for finding in findings:
        text = escape(finding.sentence) + (f"\n[dim]{escape(finding.advice)}[/]" if finding.advice else "")
        rows.append((MARKS[finding.state], f"[bold]{escape(finding.name)}[/]", text))
    selection.print_table(rows, "", "", "")
