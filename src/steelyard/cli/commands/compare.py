"""`steelyard compare A B`: compare two results of a run, or two runs."""

import argparse
from dataclasses import asdict
from pathlib import Path

from steelyard import analysis
from steelyard.analysis import compare
from steelyard.analysis.side_by_side import side_by_side
from steelyard.cli.commands import selection
from steelyard.errors import UserError
from steelyard.report import small_page
from steelyard.report.sections import side_by_side as runs_side_by_side
from steelyard.report.sections import two_runs
from steelyard.results import record, run_folders
from steelyard.results.quantities import quantity


def execute(arguments: argparse.Namespace) -> int:
    """Print the comparison."""
    root = selection.runs_of(arguments)
    folders = [_as_run(root, name) for name in (arguments.a, arguments.b, *arguments.more)]
    if arguments.more or _of_two_machines(folders, arguments.anyway):
        return _side_by_side(root, arguments)
    if arguments.output:
        raise UserError(
            "--output writes a page of runs side by side: name runs of different machines, or more than two."
        )
    found = _findings(root, arguments)
    if arguments.json:
        selection.print_json([asdict(finding) for finding in found])
        return 0
    selection.print_blocks(two_runs.lines(found))
    return 0


def _of_two_machines(folders: list[Path | None], anyway: bool) -> bool:
    """Report whether both names are those of runs, and of different machines."""
    known = [record.read(folder) for folder in folders if folder]
    return not anyway and len(known) == len(folders) and len({each.machine for each in known}) > 1


def _side_by_side(root: Path, arguments: argparse.Namespace) -> int:
    """Print runs side by side, and write their page if one is asked for."""
    ranked_by = quantity(arguments.quantity)
    names = dict.fromkeys((arguments.a, arguments.b, *arguments.more))
    found = side_by_side([analysis.view(run_folders.find(root, name), ranked_by) for name in names])
    if arguments.json:
        selection.print_json(asdict(found))
    else:
        selection.print_blocks(runs_side_by_side.lines(found))
    if arguments.output:
        print(small_page.write(runs_side_by_side.page(found), Path(arguments.output).expanduser().absolute()))
    return 0


def _findings(root: Path, arguments: argparse.Namespace) -> list[compare.Finding]:
    ranked_by = quantity(arguments.quantity)
    before, after = _as_run(root, arguments.a), _as_run(root, arguments.b)
    if before and after:
        return compare.runs(analysis.view(before, ranked_by), analysis.view(after, ranked_by), arguments.anyway)
    return compare.contenders(analysis.view(run_folders.find(root, arguments.run), ranked_by), arguments.a, arguments.b)


def _as_run(root: Path, name: str) -> Path | None:
    try:
        return run_folders.find(root, name)
    except UserError:
        return None
