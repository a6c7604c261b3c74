"""`steelyard run`: plan, do, report."""

from __future__ import annotations

import shlex
import sys
from dataclasses import replace
from typing import TYPE_CHECKING

from steelyard.cli.arguments import parser
from steelyard.cli.commands import selection
from steelyard.errors import UserError
from steelyard.plan import estimate
from steelyard.plan import resolve as plan
from steelyard.results import record

if TYPE_CHECKING:
    import argparse
    from pathlib import Path

    from steelyard.plan.options import Options
    from steelyard.results.record import RunRecord


def execute(arguments: argparse.Namespace) -> int:
    """Measure, then print the verdicts; the page's path is the last line."""
    from steelyard import report
    from steelyard import run as runs
    from steelyard.report import terminal

    root = selection.runs_of(arguments)
    options, folder = _request(arguments, root)
    if arguments.dry_run:
        estimate.show(plan.plan(options), as_json=arguments.json)
        return 0
    selection.check_cache()
    folder = folder or _begin(options, root)
    with selection.store_of(folder.parent):
        pass  # a damaged index is mended, and spoken of, before anything is measured
    screen = selection.screen_of(arguments)
    try:
        page = runs.run(options, folder, screen)
    except KeyboardInterrupt:
        screen.close()
        where = f" --runs {shlex.quote(arguments.runs)}" if arguments.runs else ""
        print(
            f"steelyard: stopped. Everything finished so far is kept; go on with: steelyard run --resume {folder.name}{where}",
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


# What may be said anew when a run goes on: nothing that decides what is measured.
BESIDE_RESUME = {"resume", "silence", "minutes", "runs", "json", "plain", "dry_run"}


def _request(arguments: argparse.Namespace, root: Path) -> tuple[Options, Path | None]:
    if not arguments.resume:
        more = {
            "protocol": arguments.protocol,
            "rounds": selection.rounds_of(arguments.rounds),
            "delta": _delta(arguments.delta),
            "minutes": arguments.minutes,
        }
        more |= {
            "certify": not arguments.no_certify,
            "calibrate": not arguments.no_calibrate,
            "guard": not arguments.no_guard,
        }
        return selection.options_of(arguments, loader_workers=arguments.loader_workers, **more), None
    _check_nothing_else(arguments)
    folder = record.find(root, arguments.resume)
    known = record.read(folder)
    _check_same(folder, known)
    minutes = known.options.minutes if arguments.minutes is None else arguments.minutes
    return replace(known.options, silence_s=arguments.silence, minutes=minutes), folder


def _check_nothing_else(arguments: argparse.Namespace) -> None:
    """Refuse options that a run which goes on would not heed."""
    usual = vars(parser(["run"]).parse_args(["run"]))
    said = [name for name, value in vars(arguments).items() if name not in BESIDE_RESUME and value != usual.get(name)]
    if said:
        options = ", ".join("--" + name.replace("_", "-") for name in said)
        raise UserError(
            f"--resume goes on with a run as it was begun, so {options} cannot be given beside it; "
            "--minutes and --silence can."
        )


def _check_same(folder: Path, known: RunRecord) -> None:
    """Rounds of one run must come from one way of measuring and one machine."""
    from steelyard import host
    from steelyard.measure.launch import worker_hash

    if known.worker_hash != worker_hash():
        raise UserError(
            f"Run {folder.name} was begun with other measuring code, so its rounds cannot be continued. Start a new run."
        )
    if known.machine and known.machine != host.describe().fingerprint():
        raise UserError(
            f"Run {folder.name} was begun on another machine (or this one has changed), so it cannot be continued. "
            "Start a new run."
        )


def _begin(options: Options, root: Path) -> Path:
    wanted = plan.plan(options)
    folder = record.new_folder(root, wanted.study.name)
    record.write(folder, record.new(wanted, shlex.join(["steelyard", *sys.argv[1:]])))
    return folder


def _delta(value: float) -> float:
    if not 0 < value < 1:
        raise UserError(f"--delta is a share between 0 and 1, such as 0.02 for 2 %, not {value:g}.")
    return value
