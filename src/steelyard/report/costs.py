"""What a contender costs beside its steps: starting up, and memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from steelyard.report import figures, notation, words
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
STARTING = (
    "What every process pays before its second step, the median over rounds: importing the framework, building the "
    "network and its optimizer, and the first step with compilation or tracing."
)
HOLDING = (
    "The most memory a process held, on the device where the framework counts it, else in all, the interpreter and the "
    "framework's libraries included."
)


def start(comparison: Comparison) -> Figure | None:
    """Return what a process takes before its second step."""
    started = [contender for contender in comparison.contenders if any(contender.phases_ns.values())]
    if not started:
        return None
    data = [_phase(started, *phase) for phase in PHASES]
    totals = [notation.duration(sum(contender.phases_ns.values())) for contender in started]
    layout = _bars(started, totals, figures.axis("seconds", nticks=6, rangemode="tozero"))
    layout |= {"barmode": "stack", "showlegend": True, "legend": {**figures.LEGEND, "y": 1.0}}
    return Figure(f"start/{comparison.group}", "Starting up", STARTING, data, layout)


def memory(comparison: Comparison, styles: dict[str, Style]) -> Figure | None:
    """Return the peak memory of each contender."""
    known = [(each, each.peak_device_bytes or each.peak_resident_bytes) for each in comparison.contenders]
    sized = [(contender, size) for contender, size in known if size]
    if not sized:
        return None
    bar = _bar([size / 2**20 for _, size in sized])
    bar |= {"marker": {"color": [styles[contender.variant].colour for contender, _ in sized]}}
    bar |= {"hovertemplate": "%{x:,.0f} MiB<extra></extra>"}
    held = [contender for contender, _ in sized]
    layout = _bars(held, [words.memory(contender) for contender in held], figures.axis("MiB", nticks=6))
    return Figure(f"memory/{comparison.group}", "Peak memory", HOLDING, [bar], layout)


def _phase(started: list[Contender], key: str, said: str, colour: str, hatch: str) -> dict[str, Any]:
    spent_ns = [contender.phases_ns.get(key, 0.0) for contender in started]
    return {
        **_bar([value / 1e9 for value in spent_ns]),
        "name": said,
        "marker": figures.hatched(colour, hatch),
        "text": [notation.duration(value) for value in spent_ns],
        "textposition": "none",
        "hovertemplate": f"{said}: %{{text}}<extra></extra>",
    }


def _bar(lengths: list[float]) -> dict[str, Any]:
    places = list(range(len(lengths)))
    return {"type": "bar", "orientation": "h", "x": figures.rounded(lengths), "y": places, "width": BAR_WIDTH}


def _bars(contenders: list[Contender], texts: list[str], across: dict[str, Any]) -> dict[str, Any]:
    """Return a frame with a name and a figure above each bar, so that narrow screens keep their width for the bars."""
    notes = [figures.note(plain(c.title), x=0, y=row, yshift=7, font={"size": 13}) for row, c in enumerate(contenders)]
    notes += [figures.note(plain(text), x=1, y=row, yshift=7, xanchor="right") for row, text in enumerate(texts)]
    down = figures.axis(range=[len(contenders) - 0.6, -0.9], visible=False, fixedrange=True)
    height = BAR_PIXELS * len(contenders) + 84
    return figures.frame(height, xaxis=across, yaxis=down, annotations=notes, hovermode="closest")
