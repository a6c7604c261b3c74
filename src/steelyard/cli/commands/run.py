"""`steelyard run`: plan, measure and report."""

from __future__ import annotations

import shlex
import sys
from dataclasses import replace
from typing import TYPE_CHECKING

from steelyard.catalog import frameworks
from steelyard.cli.arguments import parser
from steelyard.cli.commands import selection
from steelyard.errors import UserError
from steelyard.plan import resolve
from steelyard.results import record

if TYPE_CHECKING:
    import argparse
    from pathlib import Path

    from steelyard.plan.options import Options
    from steelyard.plan.run_plan import RunPlan
    from steelyard.results.record import RunRecord


def execute(arguments: argparse.Namespace) -> int:
    """Measure, then print the verdicts; the path of the page is the last line."""
    from steelyard import report
    from steelyard import run as runs
    from steelyard.report import terminal

    root = selection.runs_of(arguments)
    folder, plan = _resumed(arguments, root) if arguments.resume else (None, resolve.plan(_options(arguments)))
    if arguments.dry_run:
        from steelyard.cli import dry_run

        dry_run.show(plan, as_json=arguments.json)
        return 0
    selection.check_cache()
    folder = folder or _begin(plan, root)
    with selection.store_of(folder.parent):
        pass  # if the index is damaged, rebuild and report it before anything is measured
    screen = selection.screen_of(arguments)
    try:
        page = runs.run(plan, folder, screen)
    except KeyboardInterrupt:
        screen.close()
        where = f" --runs {shlex.quote(arguments.runs)}" if arguments.runs else ""
        print(
            "steelyard: stopped. The results of finished processes are stored. To continue: "
            f"steelyard run --resume {folder.name}{where}",
            file=sys.stderr,
        )
        return 130
    finally:
        screen.close()
    with selection.store_of(folder.parent) as store:
        terminal.show(report.view(folder, store), as_json=arguments.json)
    if not arguments.json:
        print(page)
    return 0


# Options that may change when a run is continued: none of them affects what is measured.
ALLOWED_WITH_RESUME = {"resume", "silence", "minutes", "runs", "json", "plain", "dry_run"}


def _options(arguments: argparse.Namespace) -> Options:
    return selection.options_of(
        arguments,
        loader_workers=arguments.loader_workers,
        protocol=arguments.protocol,
        rounds=selection.rounds_of(arguments.rounds),
        delta=_delta(arguments.delta),
        minutes=arguments.minutes,
        certify=not arguments.no_certify,
        calibrate=not arguments.no_calibrate,
        guard=not arguments.no_guard,
    )


def _resumed(arguments: argparse.Namespace, root: Path) -> tuple[Path, RunPlan]:
    """Return the folder of the run to continue and its plan as recorded, with the options that may change."""
    _check_nothing_else(arguments)
    folder = record.find(root, arguments.resume)
    known = record.read(folder)
    frameworks.use(known.plan.options.framework_folders)
    _check_same(folder, known)
    options = known.plan.options
    minutes = options.minutes if arguments.minutes is None else arguments.minutes
    return folder, replace(known.plan, options=replace(options, silence_s=arguments.silence, minutes=minutes))


def _check_nothing_else(arguments: argparse.Namespace) -> None:
    """Reject options that a continued run would ignore."""
    defaults = vars(parser(["run"]).parse_args(["run"]))
    given = [
        name
        for name, value in vars(arguments).items()
        if name not in ALLOWED_WITH_RESUME and value != defaults.get(name)
    ]
    if given:
        options = ", ".join("--" + name.replace("_", "-") for name in given)
        raise UserError(
            f"--resume continues a run with the options it was started with, so {options} cannot be given with it; "
            "--minutes and --silence can."
        )


def _check_same(folder: Path, known: RunRecord) -> None:
    """Reject a run whose further rounds would come from different measuring code, workloads or another machine."""
    from steelyard import host
    from steelyard.measure.launch import worker_hash

    if known.worker_hash != worker_hash():
        raise UserError(
            f"Run {folder.name} was started with different measuring code, so it cannot be continued. Start a new run."
        )
    if changed := resolve.changed_files(known.plan):
        raise UserError(
            f"The files of {', '.join(changed)} have changed since run {folder.name} was started, so it cannot be "
            "continued. Start a new run."
        )
    if known.machine and known.machine != host.describe().fingerprint():
        raise UserError(
            f"Run {folder.name} was started on another machine, or this machine has changed, so it cannot be continued. "
            "Start a new run."
        )


def _begin(plan: RunPlan, root: Path) -> Path:
    from steelyard.measure.launch import worker_hash

    folder = record.new_folder(root, plan.study.name)
    record.write(folder, record.new(plan, shlex.join(["steelyard", *sys.argv[1:]]), worker_hash()))
    return folder


def _delta(value: float) -> float:
    if not 0 < value < 1:
        raise UserError(f"--delta must be a number between 0 and 1, such as 0.02 for 2 %, not {value:g}.")
    return value
