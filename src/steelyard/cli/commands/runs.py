"""`steelyard runs list|remove`: the runs of this machine."""

import argparse
from pathlib import Path
from typing import Any

from steelyard.cli.commands import selection
from steelyard.errors import UserError
from steelyard.results import record, removal, run_folders

HEADINGS = ("run", "study", "state", "processes")
NONE = "There are no runs yet. Start with: steelyard run"


def execute(arguments: argparse.Namespace) -> int:
    """List or remove runs."""
    root = selection.runs_of(arguments)
    return _remove(root, arguments.names) if arguments.action == "remove" else _list(root, arguments)


def _list(root: Path, arguments: argparse.Namespace) -> int:
    if arguments.names:
        raise UserError("`steelyard runs list` lists every run, so it takes no name. Leave the name out.")
    found = rows(root)
    if arguments.json:
        selection.print_json(found)
    else:
        show(found, root)
    return 0


def show(found: list[dict[str, Any]], root: Path) -> None:
    """Print the rows of the runs in a folder as a table."""
    if found:
        selection.print_table(
            [(each["run"], each["study"], each["state"], str(each["processes"])) for each in found], *HEADINGS
        )
        print(f"\nThe page of a run is {root}/RUN/{record.PAGE}")
    else:
        print(NONE)


def _remove(root: Path, names: list[str]) -> int:
    if not names:
        raise UserError("Name the runs to remove. To list them: steelyard runs list")
    for name, size in removal.remove(root, list(dict.fromkeys(names))):
        print(f"Removed {name} ({size / 2**20:,.1f} MiB).")
    return 0


def rows(root: Path) -> list[dict[str, Any]]:
    """Return one row for every run in a folder, the newest first."""
    return [_row(root / name) for name in reversed(run_folders.names(root))]


def _row(folder: Path) -> dict[str, Any]:
    try:
        known = record.read(folder)
    except record.UnreadableRun as error:
        return {"run": folder.name, "study": "", "state": error.state, "processes": 0, "page": ""}
    page = folder / record.PAGE
    return {
        "run": folder.name,
        "study": known.study,
        "state": run_folders.state(folder, known),
        "processes": sum(1 for _ in folder.glob("trials/*/")),
        "page": page if page.exists() else "",
    }
