"""Costs other than step time: start-up and memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from steelyard.report import figures, formatting, notation
from steelyard.report.figures import Figure, plain

if TYPE_CHECKING:
    from steelyard.report.model import Comparison, Contender
    from steelyard.report.styles import Style

BAR_PIXELS = 44
BAR_WIDTH = 0.36
PHASES = (
    ("import", "import", "#636784", ""),
    ("build", "build the network", "#a3907a", "/"),
    ("first-step", "first step", "#c17013", ""),
)
START_CAPTION = (
    "Time before the second step, the median over rounds: importing the framework, building the network and its "
    "optimizer, and the first step with compilation or tracing."
)
MEMORY_CAPTION = (
    "The peak memory of a process: on the device if the framework reports it, otherwise of the whole process, including "
    "the interpreter and the framework's libraries."
)

LARGEST = " Each bar is the largest of all rounds; the table has their mean."


def start(comparison: Comparison) -> Figure | None:
    """Return the time a process needs before its second step; None if it was not recorded."""
    started = [contender for contender in comparison.contenders if any(contender.phases_ns.values())]
    if not started:
        return None
    data = [_phase(started, *phase) for phase in PHASES]
    totals = [notation.duration(sum(contender.phases_ns.values())) for contender in started]
    layout = _bars(started, totals, figures.axis("seconds", nticks=6, rangemode="tozero"))
    layout |= {"barmode": "stack", "showlegend": True, "legend": {**figures.LEGEND, "y": 1.0}}
    return Figure(f"start/{comparison.group}", "Start-up time", START_CAPTION, data, layout)


def memory(comparison: Comparison, styles: dict[str, Style]) -> Figure | None:
    """Return the peak memory of each contender; None if it was not recorded."""
    known = [(each, each.peak_device_bytes or each.peak_resident_bytes) for each in comparison.contenders]
    sized = [(contender, size) for contender, size in known if size]
    if not sized:
        return None
    bar = _bar([size / 2**20 for _, size in sized])
    bar |= {"marker": {"color": [styles[contender.variant].colour for contender, _ in sized]}}
    bar |= {"hovertemplate": "%{x:,.0f} MiB<extra></extra>"}
    shown = [contender for contender, _ in sized]
    caption = MEMORY_CAPTION + (LARGEST if comparison.quantity.name == "peak memory" else "")
    layout = _bars(shown, [formatting.memory(contender) for contender in shown], figures.axis("MiB", nticks=6))
    return Figure(f"memory/{comparison.group}", "Peak memory", caption, [bar], layout)


def _phase(started: list[Contender], key: str, label: str, colour: str, hatch: str) -> dict[str, Any]:
    spent_ns = [contender.phases_ns.get(key, 0.0) for contender in started]
    return {
        **_bar([value / 1e9 for value in spent_ns]),
        "name": label,
        "marker": figures.bar_style(colour, hatch),
        "text": [notation.duration(value) for value in spent_ns],
        "textposition": "none",
        "hovertemplate": f"{label}: %{{text}}<extra></extra>",
    }


def _bar(lengths: list[float]) -> dict[str, Any]:
    places = list(range(len(lengths)))
    return {"type": "bar", "orientation": "h", "x": figures.rounded(lengths), "y": places, "width": BAR_WIDTH}


def _bars(contenders: list[Contender], texts: list[str], across: dict[str, Any]) -> dict[str, Any]:
    """Return a layout with title and value above each bar, which leaves narrow screens their width for the bars."""
    notes = [
        figures.annotation(plain(c.title), x=0, y=row, yshift=7, font={"size": 13}) for row, c in enumerate(contenders)
    ]
    notes += [figures.annotation(plain(text), x=1, y=row, yshift=7, xanchor="right") for row, text in enumerate(texts)]
    down = figures.axis(range=[len(contenders) - 0.6, -0.9], visible=False, fixedrange=True)
    height = BAR_PIXELS * len(contenders) + 84
    return figures.frame(height, xaxis=across, yaxis=down, annotations=notes, hovermode="closest")
