"""`steelyard env create|list|remove`: manage the isolated environments."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from steelyard.catalog import frameworks
from steelyard.cli.commands import selection
from steelyard.errors import UserError

if TYPE_CHECKING:
    import argparse


def execute(arguments: argparse.Namespace) -> int:
    """Create, list or remove environments; the exit code is 1 if one could not be created."""
    return {"create": _create, "list": _list, "remove": _remove}[arguments.action](arguments)


def _create(arguments: argparse.Namespace) -> int:
    from steelyard import environments

    names = map(environments.EnvironmentName.parse, arguments.names or frameworks.contenders())
    screen = selection.screen_of(arguments)
    try:
        planned = environments.plan_environments(names, arguments.device)
        results = environments.ensure_all(planned, environments.shown_on(screen, failures=False))
    finally:
        screen.close()
    failures = [found.sentence for found in results.values() if isinstance(found, environments.Failure)]
    for found in results.values():
        if isinstance(found, environments.Environment):
            print(f"{found.name} {found.version}: {found.python}")
    for sentence in failures:
        print(f"steelyard: {sentence}")
    return int(bool(failures))


def _list(arguments: argparse.Namespace) -> int:
    from steelyard import environments

    rows = environments.list_environments()
    if arguments.json:
        print(json.dumps([row.to_dict() for row in rows], indent=1))
        return 0
    from rich.console import Console
    from rich.table import Table

    table = Table("environment", "version", "accelerator", "size", "state", "folder", box=None, pad_edge=False)
    for row in rows:
        table.add_row(
            row.name, row.version, row.accelerator, f"{row.size_bytes / 2**20:,.0f} MiB", row.state, str(row.folder)
        )
    Console().print(table if rows else "There are no environments yet. The next run creates those it needs.")
    return 0


def _remove(arguments: argparse.Namespace) -> int:
    from steelyard import environments

    if not arguments.names:
        raise UserError("Name the environments to remove, or write 'all'. To list them: steelyard env list")
    for row in environments.remove(arguments.names):
        print(f"Removed {row.name} {row.version} ({row.size_bytes / 2**20:,.0f} MiB).")
    return 0
