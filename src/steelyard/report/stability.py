"""How steady everything was: rounds against each other, and what the machine did meanwhile."""

from __future__ import annotations

from statistics import fmean
from typing import TYPE_CHECKING, Any

from steelyard.report import figures, notation, words
from steelyard.report.figures import Figure, plain

if TYPE_CHECKING:
    from steelyard.report.model import Comparison, Contender, View
    from steelyard.report.styles import Style

USES = (
    ("own_cores", "this run", "#6892d1", ""),
    ("foreign_cores", "other programs", "#c13a3a", "/"),
    ("steal", "taken by the host", "#636784", "."),
)
LEAST_REACH = 1.0
"""Percent: a quieter scatter than this is not blown up to fill the plot."""
SCATTERING = (
    "Each round is a fresh process. Its mean step, as a distance from the mean of all its contender's rounds: the "
    "scatter is what the intervals are made of, and what moves all contenders at once is the machine."
)
SCATTERING_AGAIN = "The same for the cached batch."
USING = (
    "Processors in use during each round, of {cores}. Work of other programs, and time that the host of a virtual "
    "machine took away, disturb a round; a round marked with a cross was measured again."
)


def rounds(comparison: Comparison, source: str, styles: dict[str, Style]) -> Figure | None:
    """Return each process's distance from its contender's mean; None before there are two rounds."""
    located = [(contender, _located(contender, source)) for contender in comparison.contenders]
    data = [_deviations(each, values, styles[each.variant]) for each, values in located if len(values) > 1]
    if not data:
        return None
    reach = 1.15 * max(LEAST_REACH, *(abs(y) for trace in data for y in trace["y"]))
    layout = figures.frame(
        320,
        showlegend=True,
        legend=figures.LEGEND,
        hovermode="closest",
        xaxis=figures.axis("round", dtick=1),
        yaxis=figures.axis("", ticksuffix=" %", range=[-reach, reach], nticks=6),
    )
    says = SCATTERING if source == next(iter(comparison.rankings)) else SCATTERING_AGAIN
    title = f"Round by round, {words.SHORT_INPUTS[source]}"
    return Figure(f"rounds/{comparison.group}/{source}", title, says, data, layout)


def machine(view: View) -> Figure | None:
    """Return how busy the machine was in each round, and with whose work."""
    lines = [line for line in view.disturbances if line["host_noise"].get("seconds", 0) > 0]
    if not lines:
        return None
    cores = view.record.host.get("cores_logical") or 0
    edge = {"type": "line", "xref": "paper", "x0": 0, "x1": 1, "y0": cores, "y1": cores}
    layout = figures.frame(
        300,
        barmode="stack",
        bargap=0.35,
        showlegend=True,
        legend=figures.LEGEND,
        xaxis=figures.axis("", type="multicategory", showgrid=False, tickfont={"size": 11}),
        yaxis=figures.axis("cores in use", nticks=6, range=[0, max(cores, 1) * 1.08]),
        shapes=[{**edge, "line": {"width": 1, "dash": "dot", "color": figures.QUIET}}],
    )
    data = [_use(lines, cores, *use) for use in USES]
    return Figure("machine", "Utilisation of the machine", USING.format(cores=cores), data, layout, wide=True)


def _located(contender: Contender, source: str) -> dict[int, float]:
    found = {trial.job.round: trial.location_ns(source) for trial in contender.trials}
    return {number: value for number, value in found.items() if value}


def _deviations(contender: Contender, values: dict[int, float], style: Style) -> dict[str, Any]:
    mean, title = fmean(values.values()), plain(contender.title)
    open_ = "" if contender.proof.state == "certified" else "-open"
    return {
        "x": list(values),
        "y": figures.rounded(100 * (value / mean - 1) for value in values.values()),
        "name": title,
        "mode": "lines+markers",
        "line": {"color": style.colour, "width": 1.5, "dash": style.dash},
        "marker": {"symbol": style.symbol + open_, "size": 8, "color": style.colour},
        "text": [notation.duration(value) for value in values.values()],
        "hovertemplate": f"{title}, round %{{x}}<br>%{{text}} a step (%{{y:+.2f}} %)<extra></extra>",
    }


def _use(lines: list[dict[str, Any]], cores: int, key: str, said: str, colour: str, hatch: str) -> dict[str, Any]:
    """Return one part of the stack; stolen time is recorded as a share of all processors."""
    quiet = [line["host_noise"] for line in lines]
    used = [cores * each.get("steal_share", 0.0) if key == "steal" else each.get(key, 0.0) for each in quiet]
    return {
        "type": "bar",
        "x": [[plain(line["group"]) for line in lines], [_place(line) for line in lines]],
        "y": figures.rounded(used, 3),
        "name": said,
        "marker": figures.hatched(colour, hatch),
        "hovertemplate": f"%{{y:.2f}} cores, {said}<extra></extra>",
    }


def _place(line: dict[str, Any]) -> str:
    attempt = f".{line['attempt']}" if line.get("attempt") else ""
    return f"{line['round']}{attempt}{'' if line['kept'] else ' ×'}"
