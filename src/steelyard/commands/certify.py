"""`steelyard certify`: certificates, and nothing timed."""

from __future__ import annotations

import json
import shlex
import sys
from typing import TYPE_CHECKING, Any

from steelyard import plan, record
from steelyard.commands import selection

if TYPE_CHECKING:
    import argparse


def execute(arguments: argparse.Namespace) -> int:
    """Certify every cell of the selection; the exit code is 1 when one is rejected or could not be tried."""
    from steelyard import run as runs

    options = selection.options_of(arguments)
    root = selection.runs_of(arguments)
    wanted = plan.plan(options)
    selection.check_cache()
    folder = record.new_folder(root, f"{wanted.study.name}-certificates")
    record.write(folder, record.new(wanted, shlex.join(["steelyard", *sys.argv[1:]])))
    screen = selection.screen_of(arguments)
    try:
        found = runs.certify(options, folder, screen, fresh=arguments.fresh)
    finally:
        screen.close()
    if arguments.json:
        print(json.dumps(found, indent=1))
    else:
        _print(found)
    return int(not all(certificate.get("passed") for certificate in found.values()))


def _print(found: dict[str, dict[str, Any]]) -> None:
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    table = Table("", "cell", "finding", box=None, pad_edge=False)
    for key, certificate in found.items():
        mark = "[green]certified[/]" if certificate.get("passed") else "[red]REJECTED[/]"
        table.add_row(mark, escape(key), escape(certificate["sentence"]))
    Console(highlight=False).print(table)
