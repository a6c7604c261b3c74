"""`steelyard cite`: how to cite a run."""

import argparse

from steelyard.cli.commands import selection
from steelyard.results import record, run_folders


def execute(arguments: argparse.Namespace) -> int:
    """Print an entry for BibTeX, or its fields as JSON."""
    from steelyard.exports import citation

    folder = run_folders.find(selection.runs_of(arguments), arguments.run)
    known = record.read(folder)
    if arguments.json:
        selection.print_json(citation.fields(known, folder.name))
    else:
        print(citation.bibtex(known, folder.name))
    return 0
