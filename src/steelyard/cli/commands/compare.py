"""`steelyard compare A B`: compare two results of a run, or two runs."""

import argparse
from dataclasses import asdict
from pathlib import Path

from steelyard import report
from steelyard.cli.commands import selection
from steelyard.errors import UserError
from steelyard.report import compare
from steelyard.results import record
from steelyard.results.quantities import quantity


def execute(arguments: argparse.Namespace) -> int:
    """Print the comparison."""
    found = _findings(selection.runs_of(arguments), arguments)
    if arguments.json:
        selection.print_json([asdict(finding) for finding in found])
        return 0
    from rich.console import Console
    from rich.markup import escape

    console = Console(highlight=False)
    for finding in found:
        console.print(f"[bold]{finding.group}[/] [dim]{finding.input}[/]  {escape(finding.sentence)}")
    return 0


def _findings(root: Path, arguments: argparse.Namespace) -> list[compare.Finding]:
    ranked_by = quantity(arguments.quantity)
    before, after = _as_run(root, arguments.a), _as_run(root, arguments.b)
    if before and after:
        return compare.runs(report.view(before, ranked_by), report.view(after, ranked_by), arguments.anyway)
    return compare.contenders(report.view(record.find(root, arguments.run), ranked_by), arguments.a, arguments.b)


def _as_run(root: Path, name: str) -> Path | None:
    try:
        return record.find(root, name)
    except UserError:
        return None
