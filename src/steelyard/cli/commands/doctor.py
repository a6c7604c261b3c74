"""`steelyard doctor`: check this machine, or the adapter of a framework."""

import argparse
import sysconfig
from contextlib import closing
from dataclasses import asdict, replace

from steelyard.cli.commands import selection
from steelyard.console import Screen
from steelyard.errors import UserError
from steelyard.measure import adapter_checks, doctor
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
    if arguments.framework_folders or arguments.workload_folders or arguments.external or arguments.workload:
        raise UserError(
            "--frameworks, --workloads, --workload and --env belong to --adapter NAME. Name the adapter to be checked."
        )
    # Two checks look for uv at once. It reads sysconfig, which Python 3.11 does not fill thread-safely on first use.
    sysconfig.get_config_vars()
    return doctor.examine()


def _adapter(arguments: argparse.Namespace) -> list[Finding]:
    asked = selection.options_of(arguments)
    chosen = (arguments.workload,) if arguments.workload else ()
    options = replace(
        asked, workloads=chosen, frameworks=(arguments.adapter,), synthetic=True, threads=(1,), protocol="fixed:1+1"
    )
    with closing(Screen()) as screen:
        return adapter_checks.examine(options, screen)


def _print(findings: list[Finding]) -> None:
    from rich.markup import escape

    rows = []
    for finding in findings:
        text = escape(finding.sentence) + (f"\n[dim]{escape(finding.advice)}[/]" if finding.advice else "")
        rows.append((MARKS[finding.state], f"[bold]{escape(finding.name)}[/]", text))
    selection.print_table(rows, "", "", "")
