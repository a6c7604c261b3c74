"""Confusion matrices on the page: which class each contender took for which, after the last evaluation."""

from __future__ import annotations

from typing import TYPE_CHECKING

from steelyard.report import figures
from steelyard.report.figures import Figure, plain
from steelyard.results import confusions

if TYPE_CHECKING:
    from steelyard.analysis.model import Comparison, Contender
    from steelyard.statistics.confusion import Counts

HEIGHT = 360
CAPTION = (
    "Of the test samples of each class (rows), the share that was predicted as each class (columns), after the last evaluation. "
    "{count} predictions, of all evaluated processes together; {right} of them are right. Classes are numbers of the data set."
)
COLOURS = [[0, "rgba(104,146,209,0)"], [1, "#2f5fa8"]]


def plots(comparison: Comparison) -> list[Figure]:
    """Return the matrix of every contender whose predictions are recorded; none of many classes."""
    known = [(each, confusions.matrix(each.trials)) for each in comparison.contenders]
    return [_plot(comparison, each, found) for each, found in known if found is not None]


def _plot(comparison: Comparison, contender: Contender, found: Counts) -> Figure:
    rows = found.sum(axis=1, keepdims=True)
    shares = 100 * found / rows.clip(min=1)
    data = {
        "type": "heatmap",
        "z": [figures.rounded(row) for row in shares],
        "customdata": found.tolist(),
        "zmin": 0,
        "zmax": 100,
        "colorscale": COLOURS,
        "colorbar": {"ticksuffix": " %", "thickness": 10, "outlinewidth": 0},
        "hovertemplate": "class %{y} predicted as %{x}: %{customdata}, %{z:.3g} %<extra></extra>",
    }
    layout = {
        "xaxis": figures.axis("predicted class", nticks=10),
        "yaxis": figures.axis("true class", nticks=10, autorange="reversed"),
    }
    right = f"{100 * found.trace() / found.sum():.4g} %"
    caption = CAPTION.format(count=f"{int(found.sum()):,}", right=right)
    frame = figures.frame(HEIGHT, figures.LEGEND, hovermode="closest", **layout)
    name = f"confusion/{comparison.group}/{contender.variant}"
    return Figure(name, f"Confusion matrix of {plain(contender.curve)}", caption, [data], frame)
