"""`steelyard report`: write the page of a run and print its table, from its stored results."""

import argparse
from pathlib import Path

from steelyard.cli.commands import selection
from steelyard.results import run_folders


def execute(arguments: argparse.Namespace) -> int:
    """Write the page and print the table; the path of the page is the last line."""
    from steelyard import analysis, report
    from steelyard.report import as_json, terminal
    from steelyard.results.quantities import quantity

    ranked_by = quantity(arguments.quantity, arguments.price)
    folder = run_folders.find(selection.runs_of(arguments), arguments.run)
    output = Path(arguments.output).expanduser().absolute() if arguments.output else None
    found = analysis.view(folder, ranked_by, arguments.price)
    page = report.write(found, output)
    (as_json if arguments.json else terminal).show(found)
    if not arguments.json:
        print(page)
    return 0
