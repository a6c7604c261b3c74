"""`steelyard run --dry-run`: print the plan with a rough time estimate."""

from steelyard import feasibility
from steelyard.cli.commands import selection
from steelyard.cluster.nodes import Choice
from steelyard.inputs import case_inputs
from steelyard.plan import estimate
from steelyard.plan.run_plan import Group, RunPlan
from steelyard.wording.task_words import fill


def show(plan: RunPlan, as_json: bool = False, nodes: Choice | None = None) -> None:
    """Print the plan as a table or as JSON. `nodes`: of a cluster, which would measure."""
    known = feasibility.known_here()
    if as_json:
        of_nodes = {"nodes": [each.name for each in nodes.nodes], "left_out": nodes.left_out} if nodes else {}
        of_weights = {"weights": plan.initial_weights} if plan.initial_weights else {}
        selection.print_json(estimate.as_dict(plan, known) | of_nodes | {"data": _data(plan)} | of_weights)
        return
    from rich.console import Console
    from rich.markup import escape

    console = Console(highlight=False)
    threads = plan.variants[0].case.settings.threads or "the framework's own default"
    console.print(f"[bold]{plan.study.title}[/]: {plan.study.question}")
    for protocol in plan.protocols:
        console.print(f"Protocol {protocol.name}: {protocol.text}.")
    console.print(f"Threads per framework: {threads}.")
    for group in plan.groups:
        _show_group(plan, group, known)
    if plan.skipped:
        console.print()
    for each in plan.skipped:
        console.print(f"[dim]{each.group}, {each.environment}: skipped. {escape(each.reason)}[/]")
    for sentence in _data(plan):
        console.print(f"\n{escape(sentence)}")
    if plan.initial_weights:
        console.print(f"\nInitial weights: {escape(plan.initial_weights)}.")
    found = estimate.estimate(plan, known)
    parts = [f"{estimate.in_words(found['rounds'])} for the rounds if the fastest is decided early"]
    if found["most_rounds"] > found["rounds"]:
        parts.append(f"at most {estimate.in_words(found['most_rounds'])}")
    extra = [
        ("exchange", "{} more to measure by itself what ranks exchange"),
        ("profiles", "{} more for profiles"),
        ("certificates", "about {}, at the longest {most}, more for certificates if none is stored"),
        ("environments", "up to {} more for environments that do not exist"),
        ("graphs", "{} more to count the graphs of steps"),
    ]
    most = estimate.in_words(found["most_certificates"])
    parts += [text.format(estimate.in_words(found[stage]), most=most) for stage, text in extra if found[stage]]
    if plan.minutes:
        parts.append(f"after {plan.minutes:g} minutes no new round starts")
    console.print(f"\nEstimated time: {'; '.join(parts)}.")
    if nodes:
        for sentence in _of_nodes(plan, nodes, found["rounds"]):
            console.print(escape(sentence))


def _data(plan: RunPlan) -> list[str]:
    """Return which parts of the user's data are left out or changed, according to a sample."""
    return case_inputs.inspect(plan, case_inputs.OPENED_FOR_A_PLAN)


def _show_group(plan: RunPlan, group: Group, known: estimate.Known) -> None:
    """Print the common settings of a group's variants as its heading, and a table of the differences."""
    from rich.console import Console
    from rich.markup import escape

    steps = [f"{estimate.step_s(plan, each, known) * 1e3:,.0f} ms" for each in group.variants]
    # Settings that are part of the title are not repeated.
    settings = ["" if each.settings in each.title else each.settings for each in group.variants]
    columns = {
        "framework": [each.title for each in group.variants],
        "mode": [each.case.settings.mode for each in group.variants],
        "settings": settings if any(settings) else [],
        "{per_step} (estimate)": steps if len(set(steps)) > 1 else [],
    }
    task = group.variants[0].case.task
    text = f"\n[bold]{escape(group.name)}[/]: {group.parameters:,} parameters, batch {group.batch_text}"
    if not columns["{per_step} (estimate)"]:
        text += fill(f", about {steps[0]} a {{step}}", task)
    Console(highlight=False).print(text)
    shown = {fill(name, task): values for name, values in columns.items() if values}
    selection.print_table(zip(*shown.values(), strict=True), *shown)


def _of_nodes(plan: RunPlan, nodes: Choice, seconds: float) -> list[str]:
    """Return how many nodes would be used, for how long, and why others would not be used."""
    at_once = sum(estimate.rounds_at_once(group.protocol) for group in plan.groups)
    used = min(len(nodes.nodes), at_once)
    names = ", ".join(each.name for each in nodes.nodes)
    sentence = (
        f"Nodes: {len(nodes.nodes)} with the fingerprint {nodes.facts.fingerprint} ({names}). At first {used} of them measure at "
        f"the same time, so the rounds take about {estimate.in_words(seconds / used)} if the fastest is decided early."
    )
    return [sentence, *nodes.left_out]
