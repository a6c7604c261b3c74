"""`steelyard gallery`: many runs and bundles as one static website."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from steelyard.cli.commands import selection
from steelyard.cli.main import one_line
from steelyard.errors import notice

if TYPE_CHECKING:
    from steelyard.exports.gallery import Site


def execute(arguments: argparse.Namespace) -> int:
    """Write the website and print its start page; the exit code is 1 if a run was left out."""
    from steelyard.exports import gallery

    folders = [Path(each) for each in arguments.sources]
    target = Path(arguments.output or f"{folders[0].absolute().name}-gallery")
    done = gallery.write(folders, target, arguments.hide)
    for sentence in (*done.copies, *done.left_out):
        notice(one_line(sentence))
    if done.not_hidden:
        notice(f"Not hidden, because names in a record consist of it: {', '.join(sorted(done.not_hidden))}.")
    if arguments.json:
        selection.print_json(_as_dict(done))
    else:
        print(done.index)
    return 1 if done.left_out else 0


def _as_dict(done: "Site") -> dict[str, Any]:
    return {
        "site": str(done.folder),
        "index": str(done.index),
        "runs": [
            {"run": name, "folder": str(done.folders[name]), "page": str(path)} for name, path in done.pages.items()
        ],
        "copies": done.copies,
        "left_out": done.left_out,
        "not_hidden": sorted(done.not_hidden),
    }
