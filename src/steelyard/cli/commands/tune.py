"""`steelyard advise --tune FRAMEWORK`: search its modes and knobs, and measure the fastest settings beside the usual ones."""

import argparse
from pathlib import Path

from steelyard.cli.commands import run as run_command
from steelyard.cli.commands import selection
from steelyard.errors import UserError
from steelyard.plan import tuning
from steelyard.plan.run_plan import Group, RunPlan, Variant
from steelyard.results import run_folders

MINUTES = 15.0
LEAST_MINUTES = 0.5
OWN = {
    "workload": "--workload",
    "modes": "--mode",
    "knobs": "--knob",
    "minutes": "--minutes",
    "workload_folders": "--workloads",
    "framework_folders": "--frameworks",
    "external": "--env",
    "wait_minutes": "--wait",
    "no_wait": "--no-wait",
}
"""The arguments that only a search accepts, as they are typed."""


def check(arguments: argparse.Namespace) -> None:
    """Reject arguments that contradict each other."""
    if not arguments.tune:
        given = [typed for name, typed in OWN.items() if getattr(arguments, name) not in (None, False)]
        if given:
            raise UserError(f"{given[0]} needs --tune FRAMEWORK.")
    elif (
        arguments.goals
        or arguments.steps
        or arguments.epochs
        or arguments.thresholds
        or arguments.any
        or arguments.price
    ):
        raise UserError(
            "--tune looks for the least time per step, so it takes no goal and no price. Choose from its result afterwards, "
            "with steelyard advise --for."
        )


def execute(arguments: argparse.Namespace) -> int:
    """Search and measure; the path of the page is the last line. The exit code is that of a run."""
    root = selection.runs_of(arguments)
    earlier = run_folders.find(root, arguments.run)
    return run_command.carry_out(arguments, planned(arguments, earlier), root)


def planned(arguments: argparse.Namespace, folder: Path) -> RunPlan:
    """Return the plan of the run that searches. UserError: the earlier run cannot be continued like this."""
    plan = run_command.continuable(folder, selection.options_of(arguments), "tuned").available
    minutes = MINUTES if arguments.minutes is None else arguments.minutes
    if minutes < LEAST_MINUTES:
        raise UserError(f"--minutes {minutes:g}: a search needs a time limit of at least {LEAST_MINUTES} minutes.")
    group = tuning.chosen_group(plan, arguments.workload or "", arguments.tune, folder.name)
    return tuning.plan(
        plan,
        folder.name,
        group,
        arguments.tune,
        _rival(folder, group, arguments.tune),
        minutes,
        arguments.modes or (),
        arguments.knobs or (),
    )


def _rival(folder: Path, group: Group, environment: str) -> Variant | None:
    """Return the fastest contender of another environment in the group; None if there is no other."""
    from steelyard import analysis

    comparison = next(each for each in analysis.view(folder).comparisons if each.group == group.name)
    ranking = comparison.rankings.get(comparison.primary)
    variants = {each.case.id: each for each in group.variants if each.case.environment != environment}
    return next((variants[key] for key in ranking.order if key in variants), None) if ranking else None
