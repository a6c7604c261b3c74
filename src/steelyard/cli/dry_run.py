"""`steelyard run --dry-run`: print the plan with a rough time estimate."""

from steelyard.cli.commands import selection
from steelyard.cluster.nodes import Choice
from steelyard.inputs.data import training_samples
from steelyard.plan import estimate
from steelyard.plan.run_plan import RunPlan
from steelyard.report.words import said

COLUMNS = ("workload", "framework", "mode", "settings", "parameters", "batch", "{per_step} (estimate)")


def show(plan: RunPlan, as_json: bool = False, nodes: Choice | None = None) -> None:
    """Print the plan as a table or as JSON. `nodes`: of a cluster, which would measure."""
    if as_json:
        of_nodes = {"nodes": [each.name for each in nodes.nodes], "left_out": nodes.left_out} if nodes else {}
        selection.print_json(estimate.as_dict(plan, training_samples()) | of_nodes)
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
    if nodes:
        for sentence in _of_nodes(plan, nodes, found["rounds"]):
            console.print(escape(sentence))


def _of_nodes(plan: RunPlan, nodes: Choice, seconds: float) -> list[str]:
    """Return how many nodes would be used and for how long, and why others would not."""
    at_once = sum(estimate.rounds_at_once(group.protocol) for group in plan.groups)
    used = min(len(nodes.nodes), at_once)
    names = ", ".join(each.name for each in nodes.nodes)
    sentence = (
        f"Nodes: {len(nodes.nodes)} with the fingerprint {nodes.facts.fingerprint} ({names}). At first {used} of them measure at "
        f"the same time, so the rounds take about {estimate.in_words(seconds / used)} if every pair is decided early."
    )
    return [sentence, *nodes.left_out]
