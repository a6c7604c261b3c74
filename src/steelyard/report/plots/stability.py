"""Stability of a run: differences between rounds, and the load of the machine."""

from statistics import fmean
from typing import Any

from steelyard.analysis import formatting, headlines
from steelyard.analysis.model import Comparison, Contender, View
from steelyard.report import figures
from steelyard.report.columns import own
from steelyard.report.figures import Figure, plain
from steelyard.report.styles import Style, Styles
from steelyard.wording.notation import quantity_text
from steelyard.wording.task_words import capitalised, fill

LOADS = (
    ("own_cores", "this run", "#6892d1", ""),
    ("foreign_cores", "other programs", "#c13a3a", "/"),
    ("steal", "taken by the VM host", "#636784", "."),
)
LEAST_RANGE = 1.0
"""Smallest range of the plot in percent, so that small noise does not fill it."""
VARIATION = (
    "{name} of each round, a new process, relative to the mean of all rounds of the same contender. The intervals are "
    "computed from this variation. A change in all contenders at once comes from the machine."
)
VARIATION_CACHED = "The same with the cached batch."
LOAD_CAPTION = (
    "Cores in use during each round, out of {cores}. A round is disturbed by other programs and by time that the host of "
    "a virtual machine takes away. Rounds marked with a cross were repeated."
)


def rounds(comparison: Comparison, source: str, styles: Styles) -> Figure | None:
    """Return each process's deviation from its contender's mean; None if there are fewer than two rounds."""
    data = [_deviations(comparison, each, source, styles[each.variant]) for each in comparison.contenders]
    data = [trace for trace in data if len(trace["x"]) > 1]
    if not data:
        return None
    limit = 1.15 * max(LEAST_RANGE, *(abs(y) for trace in data for y in trace["y"]))
    down = figures.axis("", ticksuffix=" %", range=[-limit, limit], nticks=6)
    across = figures.axis("round", dtick=1)
    layout = figures.frame(320, figures.LEGEND, hovermode="closest", xaxis=across, yaxis=down)
    caption = VARIATION.format(name=capitalised(own(comparison.quantity, comparison.task).heading))
    if source != next(iter(comparison.rankings)):
        caption = VARIATION_CACHED
    title = f"Round by round, {headlines.SHORT_INPUTS[source]}"
    return Figure(f"rounds/{comparison.group}/{source}", title, caption, data, layout)


def recorded(view: View) -> list[dict[str, Any]]:
    """Return the notes on rounds that say how much of the machine was in use; empty if none does."""
    return [line for line in view.disturbances if line["host_noise"].get("seconds", 0) > 0]


def machine(view: View) -> Figure:
    """Return the load of the machine in each round by source."""
    lines = recorded(view)
    cores = view.record.host.get("cores_logical") or 0
    edge = {"type": "line", "xref": "paper", "x0": 0, "x1": 1, "y0": cores, "y1": cores}
    layout = figures.frame(
        300,
        figures.LEGEND,
        barmode="stack",
        bargap=0.35,
        xaxis=figures.axis("", type="multicategory", showgrid=False, tickfont={"size": 11}),
        yaxis=figures.axis("cores in use", nticks=6, range=[0, max(cores, 1) * 1.08]),
        shapes=[{**edge, "line": {"width": 1, "dash": "dot", "color": figures.MUTED}}],
    )
    data = [_load(lines, cores, *load) for load in LOADS]
    return Figure("machine", "Load of the machine", LOAD_CAPTION.format(cores=cores), data, layout, wide=True)


def _deviations(comparison: Comparison, contender: Contender, source: str, style: Style) -> dict[str, Any]:
    quantity, title, unit = comparison.quantity, plain(contender.title), formatting.unit_of(comparison)
    values = quantity.of_rounds({trial.job.round: trial for trial in contender.trials}, source)
    mean, per = (
        fmean(values.values() or [1.0]),
        fill(" per {step}", comparison.task) if quantity.name == "step time" else "",
    )
    return {
        "x": list(values),
        "y": figures.rounded(100 * (value / mean - 1) for value in values.values()),
        "name": title,
        "mode": "lines+markers",
        "line": {"color": style.colour, "width": 1.5, "dash": style.dash},
        "marker": {"symbol": style.symbol_of(contender), "size": 8, "color": style.colour},
        "text": [plain(quantity_text(unit, value)) for value in values.values()],
        "hovertemplate": f"{title}, round %{{x}}<br>%{{text}}{per} (%{{y:+.2f}} %)<extra></extra>",
    }


def _load(lines: list[dict[str, Any]], cores: int, key: str, label: str, colour: str, hatch: str) -> dict[str, Any]:
    """Return one part of the stacked bars; stolen time is recorded as a share of all cores."""
    noise = [line["host_noise"] for line in lines]
    used = [cores * each.get("steal_share", 0.0) if key == "steal" else each.get(key, 0.0) for each in noise]
    places = [[plain(line["group"]) for line in lines], [_place(line) for line in lines]]
    hover = f"%{{y:.2f}} cores, {label}<extra></extra>"
    bar = {"type": "bar", "x": places, "y": figures.rounded(used, 3), "name": label, "hovertemplate": hover}
    return {**bar, "marker": figures.bar_style(colour, hatch)}


def _place(line: dict[str, Any]) -> str:
    attempt = f".{line['attempt']}" if line.get("attempt") else ""
    return f"{line['round']}{attempt}{'' if line['kept'] else ' ×'}"
