"""`steelyard list strategies`: how each framework spreads a training over devices or processes, and how it cannot."""

from itertools import groupby
from typing import Any

from steelyard.catalog import workloads
from steelyard.plan.options import Options
from steelyard_worker.strategy_kinds import ALONE, KINDS

CAPTION = (
    "Write NAME:PARTS, such as --strategy processes:2. A kind stands for every strategy of that kind. Every framework also has "
    "single:1, one process on as many cores as it has threads, and alone:PARTS, ranks that exchange nothing. Certified: on this "
    "machine with the current files."
)


def rows(options: Options) -> list[dict[str, Any]]:
    """Return every strategy by framework, then the kinds that a framework lacks, as plain data."""
    from steelyard.certificates import strategy_table

    found = strategy_table.rows(workloads.find(options.workload_folders).values())
    have = [
        {
            "framework": each.framework,
            "title": each.title,
            "strategy": each.strategy,
            "kind": each.kind,
            "help": each.help,
            "available": True,
            "not_in_modes": each.modes,
            "not_for_workloads": each.workloads,
            "other_algorithm": each.other,
            "certified": {cell: list(parts) for cell, parts in each.certified.items()},
        }
        for each in found
    ]
    lack = [
        {
            "framework": each.framework,
            "title": each.title,
            "kind": each.kind,
            "available": False,
            "reason": each.reason,
            "script": str(each.script),
            "source": each.source,
        }
        for each in strategy_table.missing()
    ]
    # The sort is stable: within a framework, existing strategies come before missing ones.
    return sorted([*have, *lack], key=lambda row: row["framework"])


def show(found: list[dict[str, Any]]) -> None:
    """Print the kinds, then the existing and missing strategies of every framework."""
    from rich.console import Console
    from rich.markup import escape

    console = Console(highlight=False)
    _table(console, "kind", [(kind, [does.help]) for kind, does in KINDS.items() if kind != ALONE])
    for title, own in groupby(found, key=lambda row: f"{row['title']} ({row['framework']})"):
        console.print()
        _table(console, title, [(_heading(row), _lines(row)) for row in own])
    console.print(f"\n{escape(CAPTION)}")


def _table(console: Any, title: str, entries: list[tuple[str, list[str]]]) -> None:
    from rich.markup import escape
    from rich.table import Table

    console.print(f"[bold]{escape(title)}[/]")
    table = Table(box=None, pad_edge=False, show_header=False, padding=(0, 2, 0, 0))
    table.add_column(min_width=2)
    table.add_column(no_wrap=True)
    table.add_column(ratio=1)
    for heading, lines in entries:
        table.add_row("", escape(heading), escape("\n".join(lines)))
    console.print(table)


def _heading(row: dict[str, Any]) -> str:
    return f"{row['strategy']} ({row['kind']})" if row["available"] else f"no {row['kind']}"


def _lines(row: dict[str, Any]) -> list[str]:
    """Return what a strategy does, where it cannot run, and where it is certified; or why there is none."""
    if not row["available"]:
        return [row["reason"], f"Shown by {row['script']}", f"See {row['source']}"]
    lines = [row["help"].strip()]
    lines += [f"Not in mode {mode}: {reason}." for mode, reason in row["not_in_modes"].items()]
    lines += [f"Not for {workload}: {reason}." for workload, reason in row["not_for_workloads"].items()]
    if row["other_algorithm"]:
        return [*lines, f"Another algorithm, so it has no certificate: {row['other_algorithm']}."]
    cells = [f"{cell} ({', '.join(map(str, parts))} parts)" for cell, parts in row["certified"].items()]
    return [*lines, f"Certified: {', '.join(cells) or 'nothing yet'}"]
