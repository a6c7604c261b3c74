"""`steelyard slurm-script`: print a batch script that measures a study on the nodes of a SLURM allocation."""

import argparse
import math

from steelyard.cli.commands import selection
from steelyard.cli.parser import parser
from steelyard.cluster import slurm


def execute(arguments: argparse.Namespace) -> int:
    """Print the script. Wrong arguments of the study are refused now, instead of hours later in the job."""
    command = ["run", *arguments.study]
    parser(command).parse_args(command)
    minutes = math.ceil(arguments.minutes)
    script = slurm.script(arguments.study, arguments.nodes, minutes, arguments.runs)
    if arguments.json:
        selection.print_json({"script": script, "nodes": arguments.nodes, "minutes": minutes, "runs": arguments.runs})
    else:
        print(script, end="")
    return 0
