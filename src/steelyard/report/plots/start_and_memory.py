"""Costs other than step time: start-up and memory."""

from typing import Any

from steelyard.analysis import formatting
from steelyard.analysis.model import Comparison, Contender
from steelyard.report import figures
from steelyard.report.figures import Figure
from steelyard.report.styles import Styles
from steelyard.wording import notation
from steelyard.wording.task_words import fill

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


def start(comparison: Comparison) -> Figure | None:
    """Return the time a process needs before its second step; None if it was not recorded."""
    started = [contender for contender in comparison.contenders if any(contender.phases_ns.values())]
    if not started:
        return None
    data = [_phase(started, key, fill(label, comparison.task), *style) for key, label, *style in PHASES]
    totals = [(each.title, notation.duration(sum(each.phases_ns.values()))) for each in started]
    layout = _bars(totals, figures.axis("seconds", nticks=6, rangemode="tozero"))
    layout |= {"barmode": "stack", "showlegend": True, "legend": {**figures.LEGEND, "y": 1.0}}
    return Figure(f"start/{comparison.group}", "Start-up time", fill(START_CAPTION, comparison.task), data, layout)


def memory(comparison: Comparison, styles: Styles) -> Figure | None:
    """Return the peak memory of each contender; None if it was not recorded."""
    known = [(each, each.peak_device_bytes or each.peak_resident_bytes) for each in comparison.contenders]
    sized = [(contender, size) for contender, size in known if size]
    if not sized:
        return None
    bar = _bar([size / 2**20 for _, size in sized])
    bar |= {"marker": {"color": [styles[contender.variant].colour for contender, _ in sized]}}
    bar |= {"hovertemplate": "%{x:,.0f} MiB<extra></extra>"}
    texts = [(contender.title, str(formatting.memory(contender))) for contender, _ in sized]
    caption = MEMORY_CAPTION + (LARGEST if comparison.quantity.name == "peak memory" else "")
    caption += OF_RANKS if any(trial.others for each, _ in sized for trial in each.trials) else ""
    return Figure(
        f"memory/{comparison.group}", "Peak memory", caption, [bar], _bars(texts, figures.axis("MiB", nticks=6))
    )


def _phase(started: list[Contender], key: str, label: str, colour: str, hatch: str) -> dict[str, Any]:
    spent_ns = [contender.phases_ns.get(key, 0.0) for contender in started]
    return {
        **_bar([value / 1e9 for value in spent_ns]), "name": label, "marker": figures.bar_style(colour, hatch),
        "text": [notation.duration(value) for value in spent_ns], "textposition": "none",
        "hovertemplate": f"{label}: %{{text}}<extra></extra>",
    }  # fmt: skip


def _bar(lengths: list[float]) -> dict[str, Any]:
    places = list(range(len(lengths)))
    return {"type": "bar", "orientation": "h", "x": figures.rounded(lengths), "y": places, "width": BAR_WIDTH}


def _bars(texts: list[tuple[str, str]], across: dict[str, Any]) -> dict[str, Any]:
    return figures.rows(BAR_PIXELS * len(texts) + 84, across, texts, -0.9, 7)
