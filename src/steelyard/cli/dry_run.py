"""`steelyard run --dry-run`: print the plan with a rough time estimate."""

from steelyard.cli.commands import selection
from steelyard.inputs.data import training_samples
from steelyard.plan import estimate
from steelyard.plan.run_plan import RunPlan
from steelyard.report.words import said

COLUMNS = ("workload", "framework", "mode", "settings", "parameters", "batch", "{per_step} (estimate)")


def show(plan: RunPlan, as_json: bool = False) -> None:
    """Print the plan as a table or as JSON."""
    if as_json:
        selection.print_json(estimate.as_dict(plan, training_samples()))
        return
    from rich.console import Console
    from rich.markup import escape

    console = Console(highlight=False)
    threads = plan.variants[0].case.settings.threads or "the framework's own default"
    console.print(f"[bold]{plan.study.title}[/]: {plan.study.question}")
    for protocol in plan.protocols:
        console.print(f"Protocol {protocol.name}: {protocol.summary}.")
    console.print(f"Threads per framework: {threads}.")
    rows = [
        (
            each.group, each.title, each.case.settings.mode, each.settings or "defaults",
            f"{plan.group(each.group).parameters:,}", plan.group(each.group).batch_text,
            f"{estimate.step_s(plan, each) * 1e3:.0f} ms",
        )
        for each in plan.variants
    ]  # fmt: skip
    selection.print_table(rows, *(said(column, plan.variants[0].case.task) for column in COLUMNS))
    for each in plan.skipped:
        console.print(f"[dim]{each.group}, {each.environment}: skipped. {escape(each.reason)}[/]")
    found = estimate.estimate(plan, training_samples())
    parts = [f"{estimate.in_words(found['rounds'])} for the rounds if every pair is decided early"]
    if found["most_rounds"] > found["rounds"]:
        parts.append(f"at most {estimate.in_words(found['most_rounds'])}")
    extra = [
        ("profiles", "for profiles"),
        ("certificates", "for certificates that are not stored"),
        ("environments", "for environments that do not exist"),
        ("graphs", "to count the graphs of steps"),
    ]
    parts += [f"{estimate.in_words(found[stage])} more {text}" for stage, text in extra if found[stage]]
    if plan.minutes:
        parts.append(f"after {plan.minutes:g} minutes no new round starts")
    console.print(f"Estimated time: {'; '.join(parts)}.")
