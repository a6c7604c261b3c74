"""`steelyard bundle`: a run as a folder that can be published."""

import argparse
from pathlib import Path

from steelyard.cli.commands import selection
from steelyard.errors import notice
from steelyard.results import run_folders


def execute(arguments: argparse.Namespace) -> int:
    """Write the bundle and print its folder. Private words that had to stay are named on standard error."""
    from steelyard.exports import bundle

    run = run_folders.find(selection.runs_of(arguments), arguments.run)
    done = bundle.write(run, Path(arguments.output or f"{run.name}-bundle"), arguments.hide)
    if done.not_hidden:
        notice(f"Not hidden, because names in the record consist of it: {', '.join(done.not_hidden)}.")
    if arguments.json:
        selection.print_json({"folder": str(done.folder), "files": done.files, "not_hidden": done.not_hidden})
    else:
        print(done.folder)
    return 0
