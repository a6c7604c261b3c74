"""The distribution of the latency of one batch: the share of batches that were complete within a given time."""

from typing import Any

import numpy as np

from steelyard.analysis.model import Comparison, Contender
from steelyard.report import figures
from steelyard.report.figures import Figure, Series
from steelyard.report.plots import forest
from steelyard.report.styles import Style, Styles
from steelyard.wording.notation import duration

POINTS = 200
"""Points of a curve, evenly spread over the shares."""
MARKED = (0.50, 0.95, 0.99)
SHOWN = 0.995
"""The axis ends where this share of every contender's batches is complete. A few slow ones would compress the plot."""
CAPTION = (
    "The share of batches whose outputs were complete within a time, over all processes of a contender. Each batch lay on the "
    "device and was timed alone, from the call to its complete outputs. Markers show p50, p95 and p99: the times that 50, 95 "
    "and 99 of 100 batches do not exceed. The slowest batches may lie beyond the axis."
)


def figure(comparison: Comparison, styles: Styles) -> Figure | None:
    """Return the curve of every contender; None where no batch was timed alone."""
    pooled = [(each, _seconds(each)) for each in comparison.contenders]
    timed = [(contender, seconds) for contender, seconds in pooled if len(seconds)]
    if not timed:
        return None
    low = min(float(seconds.min()) for _, seconds in timed)
    high = max(float(np.quantile(seconds, SHOWN)) for _, seconds in timed)
    across = forest.axis_between(0.95 * low, 1.05 * high, "latency of one batch", "ns")
    down = figures.axis("batches complete", range=[0, 102], ticksuffix=" %", nticks=6)
    layout = figures.frame(340, figures.LEGEND, hovermode="closest", xaxis=across, yaxis=down)
    data = [trace for contender, seconds in timed for trace in _curve(contender, seconds, styles[contender.variant])]
    return Figure(f"latency/{comparison.group}", "Latency of one batch", CAPTION, data, layout)


def _seconds(contender: Contender) -> Series:
    parts = [trial.latencies_ns for trial in contender.trials]
    return np.concatenate([np.zeros(0), *parts]) / 1e9


def _curve(contender: Contender, seconds: Series, style: Style) -> list[dict[str, Any]]:
    """Return the curve of a contender, and its markers."""
    title, shares = figures.plain(contender.title), np.linspace(0, 1, POINTS)
    marks = [float(np.quantile(seconds, share)) for share in MARKED]
    line = {
        "x": figures.rounded(np.quantile(seconds, shares)),
        "y": figures.rounded(100 * shares, 4),
        "mode": "lines",
        "name": title,
        "legendgroup": contender.variant,
        "hoverinfo": "skip",
        "line": {"color": style.colour, "width": 1.5, "dash": style.dash},
    }
    markers = {
        "x": figures.rounded(marks),
        "y": [100 * share for share in MARKED],
        "mode": "markers",
        "legendgroup": contender.variant,
        "showlegend": False,
        "marker": {"symbol": style.symbol_of(contender), "size": 8, "color": style.colour},
        "text": [f"p{share * 100:.0f}: {duration(mark * 1e9)}" for share, mark in zip(MARKED, marks, strict=True)],
        "hovertemplate": f"{title}<br>%{{text}}<extra></extra>",
    }
    return [line, markers]
