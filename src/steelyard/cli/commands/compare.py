"""`steelyard compare A B`: compare two results of a run, or two runs."""

import argparse
from dataclasses import asdict
from pathlib import Path

from steelyard import analysis
from steelyard.analysis import changes, compare
from steelyard.cli.commands import selection
from steelyard.errors import UserError
from steelyard.report import machines
from steelyard.results import record, run_folders
from steelyard.results.quantities import quantity
from steelyard.wording.formatted import NO_VALUE
from steelyard.wording.notation import quantity_text


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
    _print(found)
    return 0


def _of_two_machines(folders: list[Path | None], anyway: bool) -> bool:
    """Report whether both names are those of runs, and of different machines."""
    known = [record.read(folder) for folder in folders if folder]
    return not anyway and len(known) == len(folders) and len({each.machine for each in known}) > 1


def _side_by_side(root: Path, arguments: argparse.Namespace) -> int:
    """Print runs side by side, and write their page if one is asked for."""
    from rich.console import Console
    from rich.markup import escape

    ranked_by = quantity(arguments.quantity)
    names = dict.fromkeys((arguments.a, arguments.b, *arguments.more))
    found = machines.side_by_side([analysis.view(run_folders.find(root, name), ranked_by) for name in names])
    if arguments.json:
        selection.print_json(asdict(found))
    else:
        console = Console(highlight=False)
        for table in found.tables:
            console.print(f"[bold]{table.group}[/] [dim]{table.input}, {table.quantity}[/]")
            selection.print_table((map(escape, row) for row in table.texts), "contender", *found.labels)
            for sentence in (table.sentence, *(f"Not the same in all runs: {each}." for each in table.differing)):
                console.print(sentence, markup=False)
        console.print(machines.NEVER, markup=False)
    if arguments.output:
        print(machines.write(found, Path(arguments.output).expanduser().absolute()))
    return 0


def _print(found: list[compare.Finding]) -> None:
    """Print a table of two runs, the sentence and the differences of every result, then what applies to all results."""
    from rich.console import Console
    from rich.markup import escape
    from rich.padding import Padding

    console, shown = Console(highlight=False), set[tuple[str, str]]()
    if found[0].variant:
        selection.print_table((map(escape, row) for row in _rows(found)), *_headings(found[0]))
        console.print()
    else:
        console.print(f"In run {escape(found[0].run)}:")
    for each in found:
        console.print(f"[bold]{each.group}[/] [dim]{each.input}[/]  {escape(each.sentence)}")
        about = [each.cause.sentence] if each.cause.classes else []
        if (each.group, each.variant) not in shown:
            about += changes.sentences(each.differences, changes.OWN)
        shown.add((each.group, each.variant))
        for sentence in about:
            console.print(Padding(escape(sentence), (0, 0, 0, 2)))
    of_runs = [sentence for each in found for sentence in changes.sentences(each.differences, changes.COMMON)]
    unknown = [each.cause.sentence for each in found if each.cause.sentence and not each.cause.classes]
    for sentence in dict.fromkeys([*of_runs, *unknown]):
        console.print(sentence, markup=False)


def _headings(of_two_runs: compare.Finding) -> list[str]:
    return ["workload", "input", "contender", of_two_runs.b, of_two_runs.a, "after / before"]


def _rows(found: list[compare.Finding]) -> list[list[str]]:
    """Return one row for every result of two runs: the values before and after, and their ratio with its interval."""
    return [
        [
            each.group, each.input, each.title, *(_value(each.unit, value) for value in (each.value_b, each.value_a)),
            NO_VALUE if each.ratio is None else f"{each.ratio:.3f} [{each.low:.3f}, {each.high:.3f}]",
        ]
        for each in found
    ]  # fmt: skip


def _value(unit: str, value: float | None) -> str:
    return NO_VALUE if value is None else quantity_text(unit, value)


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
