"""The plot of the time of a whole job for each of its steps, by the length of the job."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from steelyard.report import figures
from steelyard.report.figures import Figure
from steelyard.report.plots import forest
from steelyard.wording.notation import duration
from steelyard.wording.task_words import fill

if TYPE_CHECKING:
    from steelyard.analysis.job_length import JobLength
    from steelyard.analysis.model import Comparison, Contender
    from steelyard.report.styles import Style, Styles

CAPTION = (
    "The time of a whole job divided by its {steps}, by the length of the job, start included: the lowest line is done first. "
    "Means over processes."
)
HEIGHT = 360
POINTS = 60
SHORTEST_AXIS, LONGEST_AXIS = 1e3, 1e7
"""The horizontal axis ends at a power of ten between these numbers of steps, beyond the last crossing."""


def figure(comparison: Comparison, known: JobLength, styles: Styles) -> Figure:
    """Return the plot, with a line for each contender."""
    end = _end(known)
    steps = np.geomspace(1, end, POINTS).tolist()
    lines = [(each, [time.after(n) / n / 1e9 for n in steps]) for each, time in known.times]
    spans = [value for _, values in lines for value in values]
    down = forest.axis_between(
        0.8 * min(spans), 1.25 * max(spans), fill("time per {step}, start included", comparison.task), "ns"
    )
    layout = figures.frame(HEIGHT, figures.LEGEND, hovermode="closest", xaxis=_across(end, comparison.task), yaxis=down)
    data = [_line(each, steps, values, styles[each.variant]) for each, values in lines]
    caption = fill(CAPTION, comparison.task)
    return Figure(f"job length/{comparison.group}", "Time by length of the job", caption, data, layout)


def _end(known: JobLength) -> int:
    """Return the number of steps at which the horizontal axis ends."""
    crossings = [pair.found.steps for pair in known.pairs if pair.found and math.isfinite(pair.found.steps)]
    longest = max([10 * time.start_ns / time.step_ns for _, time in known.times] + [3 * each for each in crossings])
    return int(10 ** math.ceil(math.log10(min(max(longest, SHORTEST_AXIS), LONGEST_AXIS))))


def _across(end: int, task: str) -> dict[str, Any]:
    ticks = [10**power for power in range(int(math.log10(end)) + 1)]
    return figures.axis(
        fill("{steps} of the job", task),
        type="log",
        range=[0, math.log10(end)],
        tickvals=ticks,
        ticktext=[f"{tick:,}" for tick in ticks],
    )


def _line(contender: Contender, steps: list[float], values: list[float], style: Style) -> dict[str, Any]:
    title = figures.plain(contender.title)
    return {
        "x": figures.rounded(steps),
        "y": figures.rounded(values),
        "mode": "lines",
        "name": title,
        "line": {"color": style.colour, "width": 1.5, "dash": style.dash},
        "text": [duration(value * 1e9) for value in values],
        "hovertemplate": f"{title}<br>%{{x:,.0f}}: %{{text}}<extra></extra>",
    }
