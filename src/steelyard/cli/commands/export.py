"""`steelyard export`: results as files for other programs, a pull request or a paper."""

import argparse

from steelyard.cli.commands import selection
from steelyard.errors import UserError
from steelyard.results import run_folders


def execute(arguments: argparse.Namespace) -> int:
    """Print the results in a format, or write them and print the paths of the files."""
    from steelyard import analysis
    from steelyard.exports import writing
    from steelyard.results.quantities import quantity

    ranked_by = quantity(arguments.quantity, arguments.price)
    if arguments.json and not arguments.output:
        raise UserError("--json prints the paths of files: name a file or a folder with -o.")
    found = analysis.view(run_folders.find(selection.runs_of(arguments), arguments.run), ranked_by, arguments.price)
    if not arguments.output:
        print(writing.text(found, arguments.format), end="")
        return 0
    files = [str(path) for path in writing.export(found, arguments.format, arguments.output)]
    if arguments.json:
        selection.print_json({"format": arguments.format, "files": files})
    else:
        print("\n".join(files))
    return 0
