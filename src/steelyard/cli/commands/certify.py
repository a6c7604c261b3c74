"""`steelyard certify`: prove that implementations compute the same function, without timing."""

from __future__ import annotations

import json
import shlex
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from steelyard.catalog import workloads
from steelyard.certificates.method import FULL_BATCH, FULL_SIZE, Scope
from steelyard.cli.commands import selection
from steelyard.errors import UserError
from steelyard.plan import resolve
from steelyard.plan.options import Options
from steelyard.results import record

if TYPE_CHECKING:
    import argparse

# Presets whose names start with this are small enough for every machine and need no data set.
SMALL = "tiny"
ALL = ("*",)
# At published sizes a float64 step can take many minutes without an event: recurrent layers have no fused kernel there.
FULL_SILENCE_S = 3600.0


def execute(arguments: argparse.Namespace) -> int:
    """Certify every selected case; the exit code is 1 if one is rejected or could not be run."""
    from steelyard import run as runs
    from steelyard.measure.launch import worker_hash

    options, scope = _request(arguments)
    root = selection.runs_of(arguments)
    plan = resolve.plan(options)
    selection.check_cache()
    folder = record.new_folder(root, f"{plan.study.name}-certificates")
    record.write(folder, record.new(plan, shlex.join(["steelyard", *sys.argv[1:]]), worker_hash()))
    screen = selection.screen_of(arguments)
    try:
        by_id = runs.certify(plan, folder, screen, fresh=arguments.fresh, scope=scope)
    finally:
        screen.close()
    names = record.read(folder).plan.by_id
    found = {names[case_id].key: certificate for case_id, certificate in by_id.items()}
    if arguments.json:
        print(json.dumps(found, indent=1))
    else:
        _print(found)
    return int(not all(certificate.get("passed") for certificate in found.values()))


def _request(arguments: argparse.Namespace) -> tuple[Options, Scope]:
    """Return what to certify: the named workloads, with --all every small preset, with --full every published preset."""
    if arguments.silence is None:
        arguments.silence = FULL_SILENCE_S if arguments.full else Options.silence_s
    options = selection.options_of(arguments)
    if (arguments.all or arguments.full) and not options.workloads:
        known = workloads.find(tuple(Path(folder) for folder in options.workload_folders))
        groups = [(name, preset) for name, workload in known.items() for preset in workload.presets]
        chosen = tuple(f"{name}:{preset}" for name, preset in groups if preset.startswith(SMALL) is not arguments.full)
        options = replace(options, workloads=chosen, frameworks=options.frameworks or ALL)
    elif arguments.all:
        raise UserError("--all certifies every workload, so --workload cannot be combined with it. Remove one of them.")
    if not arguments.full:
        return options, Scope()
    return replace(options, synthetic=True, batch=options.batch or FULL_BATCH), FULL_SIZE


def _print(found: dict[str, dict[str, Any]]) -> None:
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    table = Table("", "case", "result", box=None, pad_edge=False)
    for key, certificate in found.items():
        mark = "[green]certified[/]" if certificate.get("passed") else "[red]REJECTED[/]"
        table.add_row(mark, escape(key), escape(certificate["sentence"]))
    Console(highlight=False).print(table)
