"""`steelyard run --dry-run`: print the plan with a rough time estimate."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from steelyard.plan import estimate

if TYPE_CHECKING:
    from steelyard.plan.run_plan import RunPlan

COLUMNS = ("workload", "framework", "mode", "settings", "parameters", "batch", "step (estimate)")


def show(plan: RunPlan, as_json: bool = False) -> None:
    """Print the plan as a table or as JSON."""
    if as_json:
        print(json.dumps(estimate.as_dict(plan), indent=1))
        return
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    console = Console(highlight=False)
    threads = plan.variants[0].case.settings.threads or "the framework's own default"
    console.print(f"[bold]{plan.study.title}[/]: {plan.study.question}")
    console.print(f"Protocol {plan.protocol.name}: {plan.protocol.summary}. Threads per framework: {threads}.")
    table = Table(*COLUMNS, box=None, pad_edge=False)
    for variant in plan.variants:
        case = variant.case
        table.add_row(
            variant.group,
            variant.title,
            case.settings.mode,
            variant.settings or "defaults",
            f"{plan.group(variant.group).parameters:,}",
            str(case.batch),
            f"{estimate.step_s(plan, variant) * 1e3:.0f} ms",
        )
    console.print(table)
    for each in plan.skipped:
        console.print(f"[dim]{each.group}, {each.environment}: skipped. {escape(each.reason)}[/]")
    found = estimate.estimate(plan)
    console.print(
        f"Estimated time: {found.least_s / 60:.0f} minutes if every pair is decided early and the environments exist, at most "
        f"{found.most_s / 60:.0f} minutes."
    )
