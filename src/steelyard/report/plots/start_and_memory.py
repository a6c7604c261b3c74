"""Plots of what contenders cost apart from the time of steps: start-up and memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from steelyard.report import figures
from steelyard.report.figures import Figure
from steelyard.wording import notation
from steelyard.wording.task_words import fill

if TYPE_CHECKING:
    from collections.abc import Sequence

    from steelyard.analysis.model import Comparison, Contender
    from steelyard.analysis.start_and_memory import StartAndMemory
    from steelyard.report.styles import Styles

BAR_PIXELS = 44
BAR_WIDTH = 0.36
PHASES = (
    ("import", "import", "#636784", ""),
    ("build", "build the network", "#a3907a", "/"),
    ("first-step", "first {step}", "#c17013", ""),
)
START_CAPTION = (
    "Time before the second {step}, the median over rounds: importing the framework, {building}, and the first {step} with "
    "compilation or tracing."
)
MEMORY_CAPTION = (
    "The peak memory of a process: on the device if the framework reports it, otherwise of the whole process, including "
    "the interpreter and the framework's libraries."
)
OF_RANKS = " Of several ranks, it is the sum over all of them."
LARGEST = " Each bar is the largest of all rounds; the table has their mean."


def figures_of(comparison: Comparison, known: StartAndMemory, styles: Styles) -> list[Figure]:
    """Return the plots of what was recorded: the start, and peak memory."""
    start = [_start(comparison, known.started)] if known.started else []
    return start + ([_memory(comparison, known, styles)] if known.sized else [])


def _start(comparison: Comparison, started: Sequence[Contender]) -> Figure:
    """Return the time that a process needs before its second step."""
    data = [_phase(started, key, fill(label, comparison.task), *style) for key, label, *style in PHASES]
    totals = [(each.title, notation.duration(sum(each.phases_ns.values()))) for each in started]
    layout = _bars(totals, figures.axis("seconds", nticks=6, rangemode="tozero"))
    layout |= {"barmode": "stack", "showlegend": True, "legend": {**figures.LEGEND, "y": 1.0}}
    return Figure(f"start/{comparison.group}", "Start-up time", fill(START_CAPTION, comparison.task), data, layout)


def _memory(comparison: Comparison, known: StartAndMemory, styles: Styles) -> Figure:
    """Return the peak memory of each contender."""
    bar = _bar([size / 2**20 for _, size in known.sized])
    bar |= {"marker": {"color": [styles[contender.variant].colour for contender, _ in known.sized]}}
    bar |= {"hovertemplate": "%{x:,.0f} MiB<extra></extra>"}
    texts = [(contender.title, notation.quantity_text("bytes", size)) for contender, size in known.sized]
    caption = MEMORY_CAPTION + (LARGEST if known.largest else "") + (OF_RANKS if known.of_ranks else "")
    layout = _bars(texts, figures.axis("MiB", nticks=6))
    return Figure(f"memory/{comparison.group}", "Peak memory", caption, [bar], layout)


def _phase(started: Sequence[Contender], key: str, label: str, colour: str, hatch: str) -> dict[str, Any]:
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


def _bars(texts: list[tuple[str, str]], across: dict[str, Any]) -> dict[str, Any]:
    return figures.rows(BAR_PIXELS * len(texts) + 84, across, texts, -0.9, 7)
