"""Step times of whole runs: one strip per contender; long series are thinned but keep every spike."""

import math
from typing import Any

import numpy as np

from steelyard.analysis import headlines
from steelyard.analysis.model import Comparison, Contender
from steelyard.report import figures
from steelyard.report.figures import Figure, Series, extremes
from steelyard.report.styles import Styles
from steelyard.wording import notation
from steelyard.wording.task_words import fill

POINTS = 2000
"""Approximate number of points plotted per contender and input: the smallest and the largest step of every bin."""
STRIP_PIXELS = 92
STRIP_SHARE = 0.76
"""The share of a strip's height for its axis; the rest is for the title."""
TICKS: dict[str, Any] = {"nticks": 4, "tickformat": "~s", "ticksuffix": "s", "tickfont": {"size": 11}}
PREPARING = ("training", "warm-up")
LEAST_SPAN = 0.08
"""Smallest height of a strip as a share of the median, so that the noise of a steady contender does not fill it."""
STEPS = (
    "The {step} times of each contender. Dotted lines separate the rounds, each a new process. Grey: {uncounted}, "
    "not counted; coloured: counted. First {steps} are omitted, because they have their own column. In long series only "
    "the shortest and the longest {step} of each interval are shown. Triangles mark {steps} beyond the scale. Flat segments "
    "are blocks of which only the mean is known."
)
STEPS_CACHED = "The same with the cached batch, without the time for fetching input."


Point = tuple[int | None, float, int]
"""Number of the step, seconds, round; the number is None in the gap between two rounds."""


def step_times(comparison: Comparison, source: str, styles: Styles) -> Figure | None:
    """Return one strip per contender: the steps of all rounds in order; None for an input without steps.

    An input has no steps if nothing was measured on it, or if it is the whole process (a quantity with one value per process).
    """
    measured = [contender for contender in comparison.contenders if source in contender.speeds]
    if not measured:
        return None
    names = ["y", *(f"y{row}" for row in range(2, len(measured) + 1))]
    across = figures.axis(fill("{steps} of all rounds in order", comparison.task), nticks=6, rangemode="tozero")
    layout: dict[str, Any] = {"xaxis": across | {"anchor": names[-1]}}
    data, titles, borders, height = [], [], [], 1 / len(measured)
    for row, (name, contender) in enumerate(zip(names, measured, strict=True)):
        grey, bright, starts, (low, high) = _steps(contender, source)
        colour = styles[contender.variant].colour
        beyond = [point for point in (*grey, *bright) if point[0] is not None and point[1] > high]
        data += [_trace(name, grey, figures.MUTED, 1, "not counted"), _trace(name, bright, colour, 1.2, "counted")]
        data += [_beyond(name, beyond, colour, high)] if beyond else []
        top = 1 - row * height
        domain = [max(0.0, top - height * STRIP_SHARE), top]
        layout[f"yaxis{name[1:]}"] = figures.axis(domain=domain, range=[low, high], **TICKS)
        titles.append(_title(name, contender.title, beyond))
        borders += [_border(name, start) for start in starts[1:]]
    layout |= {"annotations": titles, "shapes": borders, "margin": {"l": 8, "r": 12, "t": 24, "b": 40}}
    frame = figures.frame(STRIP_PIXELS * len(measured) + 70, hovermode="closest", **layout)
    caption = fill(STEPS, comparison.task) if source == next(iter(comparison.rankings)) else STEPS_CACHED
    title = f"{fill('{Step} times', comparison.task)}, {headlines.SHORT_INPUTS[source]}"
    return Figure(f"steps/{comparison.group}/{source}", title, caption, data, frame)


def _steps(contender: Contender, source: str) -> tuple[list[Point], list[Point], list[int], tuple[float, float]]:
    """Return the points of uncounted and of counted steps, the number of each round's first step, and the scale."""
    parts = [(trial.job.round, trial.steps_ns(source, PREPARING), trial.steps_ns(source)) for trial in contender.trials]
    total = sum(len(before) + len(counted) for _, before, counted in parts) or 1
    grey: list[Point] = []
    bright: list[Point] = []
    starts, position = [], 0
    for number, before, counted in parts:
        starts.append(position)
        for points, values in ((grey, before), (bright, counted)):
            bins = max(1, round(POINTS / 2 * len(values) / total))
            points += _thinned(values / 1e9, position, bins, number)
            position += len(values)
    return grey, bright, starts, _scale(np.concatenate([counted for _, _, counted in parts]) / 1e9)


def _thinned(values: Series, start: int, bins: int, number: int) -> list[Point]:
    """Return the steps of one round, thinned to two points per bin, and a gap after them."""
    if not len(values):
        return []
    places, thinned = extremes(values, bins)
    points = zip((places + start).tolist(), thinned.tolist(), strict=True)
    return [*((place, value, number) for place, value in points), (None, math.nan, number)]


def _scale(counted: Series) -> tuple[float, float]:
    """Return the ends of a strip's axis in seconds; a few steps may lie beyond."""
    low, middle, high = (float(value) for value in np.quantile(counted, (0.002, 0.5, 0.99)))
    span = max(high - low, LEAST_SPAN * middle)
    return max(0.0, low - 0.15 * span), max(high, middle) + 0.35 * span


def _trace(name: str, points: list[Point], colour: str, width: float, label: str) -> dict[str, Any]:
    return {
        "x": [step for step, _, _ in points],
        "y": figures.rounded((y for _, y, _ in points), 4),
        "customdata": [number for _, _, number in points],
        "mode": "lines",
        "line": {"color": colour, "width": width},
        "yaxis": name,
        "connectgaps": False,
        "hovertemplate": f"%{{y:.4s}}s, {label}<br>round %{{customdata}}<extra></extra>",
    }


def _beyond(name: str, points: list[Point], colour: str, high: float) -> dict[str, Any]:
    """Return markers at the upper edge for steps beyond the scale, with their true values."""
    return {
        "x": [step for step, _, _ in points],
        "y": figures.rounded([high]) * len(points),
        "mode": "markers",
        "yaxis": name,
        "marker": {"symbol": "triangle-up", "size": 7, "color": colour},
        "cliponaxis": False,
        "customdata": [[float(f"{y:.4g}"), number] for _, y, number in points],
        "hovertemplate": "%{customdata[0]:.4s}s, beyond the scale<br>round %{customdata[1]}<extra></extra>",
    }


def _title(name: str, title: str, beyond: list[Point]) -> dict[str, Any]:
    """Return the title above a strip, with the longest step if it is beyond the scale."""
    text = figures.plain(title)
    if beyond:
        text += (
            f" <span style='font-size:11px'>(longest {notation.duration(max(y for _, y, _ in beyond) * 1e9)})</span>"
        )
    return figures.annotation(text, x=0, y=1, yref=f"{name} domain", yshift=2, font={"size": 13})


def _border(name: str, start: int) -> dict[str, Any]:
    line = {"width": 1, "color": figures.MUTED, "dash": "dot"}
    place = {"x0": start, "x1": start, "yref": f"{name} domain", "y0": 0, "y1": 1}
    return {"type": "line", **place, "line": line, "layer": "below"}
