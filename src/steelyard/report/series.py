"""Step times of whole runs: one strip per contender, long series thinned without losing a spike."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from steelyard.report import figures, notation, words
from steelyard.report.figures import Figure, extremes

if TYPE_CHECKING:
    from steelyard.report.figures import Series
    from steelyard.report.model import Comparison, Contender
    from steelyard.report.styles import Style
    from steelyard.results.trials import Trial

POINTS = 2000
"""Drawn per contender and input at most, about: the smallest and the largest step of every bin."""
STRIP_PIXELS = 92
PREPARING = ("training", "warm-up")
LEAST_SPAN = 0.08
"""Of the median: a strip shows at least this much, or the noise of a steady contender would fill it."""
STEPS = (
    "Each contender's steps, round after round; hairlines part the rounds, each a fresh process. Grey: training and "
    "warm-up, which do not count; coloured: counted. First steps are left out, for they have a column of their own. Of "
    "long series the shortest and the longest step of each stretch are drawn; triangles mark steps beyond the scale. "
    "Flat stretches are blocks of which only the mean is known."
)
STEPS_AGAIN = "The same for the cached batch: what is left when no input has to be fetched."


def step_times(comparison: Comparison, source: str, styles: dict[str, Style]) -> Figure | None:
    """Return one strip per contender: all steps of all rounds, one round after the other."""
    measured = [contender for contender in comparison.contenders if source in contender.speeds]
    if not measured:
        return None
    layout: dict[str, Any] = {"xaxis": figures.axis("steps, one round after the other", nticks=6, rangemode="tozero")}
    data, notes, shapes = [], [], []
    for row, contender in enumerate(measured):
        strip = _Strip(row, len(measured), styles[contender.variant])
        data += strip.traces(contender, source)
        layout[strip.axis_key] = strip.axis()
        notes.append(strip.note(contender.title))
        shapes += [_border(start, strip.axis_name) for start in strip.starts[1:]]
    layout["xaxis"]["anchor"] = _axis_name(len(measured) - 1)
    layout |= {"annotations": notes, "shapes": shapes, "margin": {"l": 8, "r": 12, "t": 24, "b": 40}}
    frame = figures.frame(STRIP_PIXELS * len(measured) + 70, hovermode="closest", **layout)
    says = STEPS if source == next(iter(comparison.rankings)) else STEPS_AGAIN
    return Figure(f"steps/{comparison.group}/{source}", f"Step times, {words.SHORT_INPUTS[source]}", says, data, frame)


class _Strip:
    """One contender's part of the plot."""

    def __init__(self, row: int, rows: int, style: Style) -> None:
        self.axis_name, self.axis_key = _axis_name(row), "yaxis" + _axis_name(row)[1:]
        self.starts: list[int] = []
        self._longest = ""
        self._row, self._rows, self._style = row, rows, style
        self._low, self._high = 0.0, 1.0

    def traces(self, contender: Contender, source: str) -> list[dict[str, Any]]:
        """Return the steps that count and those that do not; fixes the scale, and notes where rounds begin."""
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
            self._trace(grey, {"color": figures.QUIET, "width": 1}, "not counted"),
            self._trace(bright, {"color": self._style.colour, "width": 1.2}, "counted"),
            *self._beyond(grey, bright),
        ]

    def note(self, title: str) -> dict[str, Any]:
        """Return the title above the strip, with the longest step where that is beyond the scale."""
        where = {"x": 0, "y": 1, "yref": f"{self.axis_name} domain", "yshift": 2, "font": {"size": 13}}
        return figures.note(figures.plain(title) + self._longest, **where)

    def axis(self) -> dict[str, Any]:
        """Return the vertical axis, in its place on the plot."""
        height = 1 / self._rows
        top = 1 - self._row * height
        domain = [max(0.0, top - height * 0.76), top]
        ticks: dict[str, Any] = {"nticks": 4, "tickformat": "~s", "ticksuffix": "s", "tickfont": {"size": 11}}
        return figures.axis(domain=domain, range=[self._low, self._high], **ticks)

    def _scale(self, counted: Series) -> None:
        low, middle, high = (float(value) for value in np.quantile(counted, (0.002, 0.5, 0.99)))
        span = max(high - low, LEAST_SPAN * middle)
        self._low, self._high = max(0.0, low - 0.15 * span), max(high, middle) + 0.35 * span

    def _trace(self, line: _Line, look: dict[str, Any], said: str) -> dict[str, Any]:
        return {
            "x": line.x,
            "y": figures.rounded(line.y, 4),
            "customdata": line.rounds,
            "mode": "lines",
            "line": look,
            "yaxis": self.axis_name,
            "connectgaps": False,
            "hovertemplate": f"%{{y:.4s}}s, {said}<br>round %{{customdata}}<extra></extra>",
        }

    def _beyond(self, *lines: _Line) -> list[dict[str, Any]]:
        """Mark what lies above the scale at its edge, with its true value."""
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
    """Points of one colour, broken between rounds."""

    def __init__(self) -> None:
        self.x: list[int | None] = []
        self.y: list[float] = []
        self.rounds: list[int] = []

    def add(self, values: Series, start: int, bins: int, number: int) -> None:
        """Add the steps of one round, thinned to two points a bin, and a break after them."""
        if len(values):
            places, kept = extremes(values, bins)
            self.x += [*(places + start).tolist(), None]
            self.y += [*kept.tolist(), float("nan")]
            self.rounds += [number] * (len(kept) + 1)


def _preparing(trial: Trial, source: str) -> Series:
    return trial.steps_ns(source, PREPARING) / 1e9


def _axis_name(row: int) -> str:
    return "y" if row == 0 else f"y{row + 1}"


def _border(start: int, axis_name: str) -> dict[str, Any]:
    line = {"width": 1, "color": figures.QUIET, "dash": "dot"}
    place = {"x0": start, "x1": start, "yref": f"{axis_name} domain", "y0": 0, "y1": 1}
    return {"type": "line", **place, "line": line, "layer": "below"}
