"""Step times of whole runs: one strip per contender; long series are thinned but keep every spike."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from steelyard.report import figures, formatting, notation
from steelyard.report.figures import Figure, extremes

if TYPE_CHECKING:
    from steelyard.report.figures import Series
    from steelyard.report.model import Comparison, Contender
    from steelyard.report.styles import Style
    from steelyard.results.trials import Trial

POINTS = 2000
"""Approximate number of points plotted per contender and input: the smallest and the largest step of every bin."""
STRIP_PIXELS = 92
PREPARING = ("training", "warm-up")
LEAST_SPAN = 0.08
"""Smallest height of a strip as a share of the median, so that the noise of a steady contender does not fill it."""
STEPS = (
    "The step times of each contender. Dotted lines separate the rounds, each a new process. Grey: training and warm-up, "
    "not counted; coloured: counted. First steps are omitted, because they have their own column. In long series only "
    "the shortest and the longest step of each interval are shown. Triangles mark steps beyond the scale. Flat segments "
    "are blocks of which only the mean is known."
)
STEPS_CACHED = "The same with the cached batch, without the time for fetching input."


def step_times(comparison: Comparison, source: str, styles: dict[str, Style]) -> Figure | None:
    """Return one strip per contender: the steps of all rounds in order; None if nothing was measured."""
    measured = [contender for contender in comparison.contenders if source in contender.speeds]
    if not measured:
        return None
    layout: dict[str, Any] = {"xaxis": figures.axis("steps of all rounds in order", nticks=6, rangemode="tozero")}
    data, titles, shapes = [], [], []
    for row, contender in enumerate(measured):
        strip = _Strip(row, len(measured), styles[contender.variant])
        data += strip.traces(contender, source)
        layout[strip.axis_key] = strip.axis()
        titles.append(strip.title(contender.title))
        shapes += [_border(start, strip.axis_name) for start in strip.starts[1:]]
    layout["xaxis"]["anchor"] = _axis_name(len(measured) - 1)
    layout |= {"annotations": titles, "shapes": shapes, "margin": {"l": 8, "r": 12, "t": 24, "b": 40}}
    frame = figures.frame(STRIP_PIXELS * len(measured) + 70, hovermode="closest", **layout)
    caption = STEPS if source == next(iter(comparison.rankings)) else STEPS_CACHED
    return Figure(
        f"steps/{comparison.group}/{source}", f"Step times, {formatting.SHORT_INPUTS[source]}", caption, data, frame
    )


class _Strip:
    """One contender's part of the plot."""

    def __init__(self, row: int, rows: int, style: Style) -> None:
        self.axis_name, self.axis_key = _axis_name(row), "yaxis" + _axis_name(row)[1:]
        self.starts: list[int] = []
        self._longest = ""
        self._row, self._rows, self._style = row, rows, style
        self._low, self._high = 0.0, 1.0

    def traces(self, contender: Contender, source: str) -> list[dict[str, Any]]:
        """Return counted and uncounted steps as traces; also sets the scale and the starts of the rounds."""
        parts = [(trial, _preparing(trial, source), trial.steps_ns(source) / 1e9) for trial in contender.trials]
        total = sum(len(before) + len(counted) for _, before, counted in parts) or 1
        counted = np.concatenate([part[2] for part in parts])
        self._scale(counted)
        grey, bright, position = _Line(), _Line(), 0
        for trial, before, after in parts:
            self.starts.append(position)
            for line, values in ((grey, before), (bright, after)):
                line.add(values, position, max(1, round(POINTS / 2 * len(values) / total)), trial.job.round)
                position += len(values)
        return [
            self._trace(grey, {"color": figures.MUTED, "width": 1}, "not counted"),
            self._trace(bright, {"color": self._style.colour, "width": 1.2}, "counted"),
            *self._beyond(grey, bright),
        ]

    def title(self, title: str) -> dict[str, Any]:
        """Return the title above the strip, with the longest step if it is beyond the scale."""
        where = {"x": 0, "y": 1, "yref": f"{self.axis_name} domain", "yshift": 2, "font": {"size": 13}}
        return figures.annotation(figures.plain(title) + self._longest, **where)

    def axis(self) -> dict[str, Any]:
        """Return the vertical axis at its position in the plot."""
        height = 1 / self._rows
        top = 1 - self._row * height
        domain = [max(0.0, top - height * 0.76), top]
        ticks: dict[str, Any] = {"nticks": 4, "tickformat": "~s", "ticksuffix": "s", "tickfont": {"size": 11}}
        return figures.axis(domain=domain, range=[self._low, self._high], **ticks)

    def _scale(self, counted: Series) -> None:
        low, middle, high = (float(value) for value in np.quantile(counted, (0.002, 0.5, 0.99)))
        span = max(high - low, LEAST_SPAN * middle)
        self._low, self._high = max(0.0, low - 0.15 * span), max(high, middle) + 0.35 * span

    def _trace(self, line: _Line, line_style: dict[str, Any], label: str) -> dict[str, Any]:
        return {
            "x": line.x,
            "y": figures.rounded(line.y, 4),
            "customdata": line.rounds,
            "mode": "lines",
            "line": line_style,
            "yaxis": self.axis_name,
            "connectgaps": False,
            "hovertemplate": f"%{{y:.4s}}s, {label}<br>round %{{customdata}}<extra></extra>",
        }

    def _beyond(self, *lines: _Line) -> list[dict[str, Any]]:
        """Return markers at the upper edge for steps beyond the scale, with their true values."""
        high = [
            (x, y, number)
            for line in lines
            for x, y, number in zip(line.x, line.y, line.rounds, strict=True)
            if x is not None and y > self._high
        ]
        if not high:
            return []
        longest = notation.duration(max(y for _, y, _ in high) * 1e9)
        self._longest = f" <span style='font-size:11px'>(longest {longest})</span>"
        return [
            {
                "x": [x for x, _, _ in high],
                "y": [figures.rounded([self._high])[0]] * len(high),
                "mode": "markers",
                "yaxis": self.axis_name,
                "marker": {"symbol": "triangle-up", "size": 7, "color": self._style.colour},
                "cliponaxis": False,
                "customdata": [[float(f"{y:.4g}"), number] for _, y, number in high],
                "hovertemplate": "%{customdata[0]:.4s}s, beyond the scale<br>round %{customdata[1]}<extra></extra>",
            }
        ]


class _Line:
    """Points of one colour, interrupted between rounds."""

    def __init__(self) -> None:
        self.x: list[int | None] = []
        self.y: list[float] = []
        self.rounds: list[int] = []

    def add(self, values: Series, start: int, bins: int, number: int) -> None:
        """Add the steps of one round, thinned to two points per bin, and a gap after them."""
        if len(values):
            places, thinned = extremes(values, bins)
            self.x += [*(places + start).tolist(), None]
            self.y += [*thinned.tolist(), float("nan")]
            self.rounds += [number] * (len(thinned) + 1)


def _preparing(trial: Trial, source: str) -> Series:
    return trial.steps_ns(source, PREPARING) / 1e9


def _axis_name(row: int) -> str:
    return "y" if row == 0 else f"y{row + 1}"


def _border(start: int, axis_name: str) -> dict[str, Any]:
    line = {"width": 1, "color": figures.MUTED, "dash": "dot"}
    place = {"x0": start, "x1": start, "yref": f"{axis_name} domain", "y0": 0, "y1": 1}
    return {"type": "line", **place, "line": line, "layer": "below"}
