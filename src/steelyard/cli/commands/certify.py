"""`steelyard certify`: prove that implementations compute the same function, without timing."""

import argparse
from contextlib import closing
from dataclasses import replace
from typing import Any

from steelyard.catalog import workloads
from steelyard.certificates.method import FULL_BATCH, FULL_SIZE, Scope
from steelyard.cli.commands import selection, waiting
from steelyard.errors import UserError
from steelyard.plan.options import Options
from steelyard.results import record

# Presets whose names start with this are small enough for every machine and need no data set.
SMALL = "tiny"
ALL = ("*",)
# At published sizes a float64 step can take many minutes without an event: recurrent layers have no fused kernel there.
FULL_SILENCE_S = 3600.0


def execute(arguments: argparse.Namespace) -> int:
    """Certify every selected case. The exit code follows `outcome`; cases that were rejected or did not run count as left out."""
    from steelyard import feasibility, stages
    from steelyard.cli import outcome

    options, scope = _request(arguments)
    limit_s = waiting.limit_s(arguments)
    root = selection.runs_of(arguments)
    plan, _ = feasibility.planned(options)
    selection.check_cache()
    with (
        selection.begun(plan, root, f"{plan.study.name}-certificates") as folder,
        closing(selection.screen_of(arguments)) as screen,
    ):
        by_id = stages.certify(plan, folder, screen, fresh=arguments.fresh, scope=scope, limit_s=limit_s)
    names = record.read(folder).plan.by_id
    found = {names[case_id].key: certificate for case_id, certificate in by_id.items()}
    if arguments.json:
        selection.print_json(found)
    else:
        _print(found)
    passed = sum(bool(certificate.get("passed")) for certificate in by_id.values())
    on_purpose = sum(bool(certificate.get("on_purpose")) for certificate in by_id.values())
    # Cases without an environment have no certificate.
    return outcome.code(passed, len(plan.variants) - passed - on_purpose)


def _request(arguments: argparse.Namespace) -> tuple[Options, Scope]:
    """Return the cases to certify: the named workloads, with --all every small preset, with --full every published preset."""
    if arguments.full and arguments.silence_s is None:
        arguments.silence_s = FULL_SILENCE_S
    options = selection.options_of(arguments)
    if (arguments.all or arguments.full) and not options.workloads:
        known = workloads.find(options.workload_folders)
        groups = [(name, preset) for name, workload in known.items() for preset in workload.presets]
        chosen = tuple(f"{name}:{preset}" for name, preset in groups if preset.startswith(SMALL) is not arguments.full)
        options = replace(options, workloads=chosen, frameworks=options.frameworks or ALL)
    elif arguments.all:
        raise UserError("--all certifies every workload, so --workload cannot be combined with it. Remove one of them.")
    if not arguments.full:
        return options, Scope()
    return replace(options, synthetic=True, batches=options.batches or (FULL_BATCH,)), FULL_SIZE


def _print(found: dict[str, dict[str, Any]]) -> None:
    from rich.markup import escape

    marks = {True: "[green]certified[/]", False: "[red]REJECTED[/]"}
    rows = [(marks[bool(each.get("passed"))], escape(key), escape(each["sentence"])) for key, each in found.items()]
    selection.print_table(rows, "", "case", "result")
