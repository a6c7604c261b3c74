"""`steelyard explain`: where the time of a step goes, and what makes one contender slower than another."""

import argparse
from contextlib import closing

from steelyard.cli.commands import run as run_command
from steelyard.cli.commands import selection, waiting
from steelyard.errors import UserError, nearest
from steelyard.files import paths
from steelyard.plan.run_plan import RunPlan, Variant
from steelyard.results import run_folders, trials


def execute(arguments: argparse.Namespace) -> int:
    """Profile the contenders without a profile, write the page again and print the results. The exit code follows `outcome`."""
    from steelyard import analysis, report, stages
    from steelyard.cli import outcome
    from steelyard.report import explained_lines

    limit_s = waiting.limit_s(arguments)
    folder = run_folders.find(selection.runs_of(arguments), arguments.run)
    if not trials.has_finished(folder):
        advice = f"Continue it with: steelyard run --resume {paths.named(folder)}"
        raise UserError(f"Run {folder.name} has no finished process, so there is nothing to explain. {advice}")
    plan = run_command.continuable(folder, selection.options_of(arguments), "explained").available
    wanted = _wanted(folder.name, plan, arguments.results)
    selection.check_cache()
    with closing(selection.screen_of(arguments)) as screen:
        processes = arguments.profiles or max(1, plan.profiles)
        stages.explain(plan, folder, screen, wanted, processes, arguments.fresh, limit_s)
    found = analysis.view(folder)
    ids = {variant.case.id for variant in wanted}
    if arguments.json:
        selection.print_json(explained_lines.as_dict(found, ids, report.write(found)))
    else:
        explained_lines.show(found, ids)
        print(report.write(found))
    return outcome.of_explanation(found, ids)


def _wanted(run: str, plan: RunPlan, names: list[str]) -> list[Variant]:
    """Return the named variants, by framework or in full; without names all. UserError: there is no such result."""
    if not names:
        return list(plan.variants)
    found = []
    for name in names:
        matching = [each for each in plan.variants if name in (each.key, each.name, each.case.environment)]
        if not matching:
            raise UserError(f"Run {run} has no result '{name}'.{nearest(name, [each.name for each in plan.variants])}")
        found += matching
    return list({each.case.id: each for each in found}.values())
