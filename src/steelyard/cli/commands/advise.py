"""`steelyard advise`: what to choose, from the results of a run and the goals of a person."""

import argparse

from steelyard.cli.commands import selection, tune
from steelyard.errors import UserError, nearest
from steelyard.results import run_folders


def execute(arguments: argparse.Namespace) -> int:
    """Print the answers, or search settings with `--tune`; the exit code is 1 if there is no result."""
    from steelyard import analysis
    from steelyard.analysis.goals import CONDITIONS, GOALS, Wishes
    from steelyard.report import advice

    tune.check(arguments)
    if arguments.tune:
        return tune.execute(arguments)
    asked: dict[str, float] = {}
    for name, weight in arguments.goals or ():
        if name not in GOALS:
            raise UserError(f"There is no goal '{name}'.{nearest(name, list(GOALS))}")
        if name in asked:
            raise UserError(f"--for {name} is given twice. Give each goal once, with its weight.")
        if name in CONDITIONS and weight != 1:
            raise UserError(f"--for {name} takes no weight: a contender meets it or does not, and is set aside if not.")
        asked[name] = weight
    if arguments.steps and arguments.epochs:
        raise UserError("--steps and --epochs contradict each other. Remove one of them.")
    wishes = Wishes(
        {name: weight for name, weight in asked.items() if name not in CONDITIONS},
        tuple(name for name in asked if name in CONDITIONS),
        arguments.steps,
        arguments.epochs,
        tuple(arguments.thresholds),
        only_maintained=not arguments.any,
    )
    folder = run_folders.find(selection.runs_of(arguments), arguments.run)
    return 0 if advice.show(analysis.view(folder, price=arguments.price), wishes, arguments.json) else 1
