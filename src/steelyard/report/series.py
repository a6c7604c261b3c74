"""Step times of whole runs: one strip per contender, long series thinned without losing a spike."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from steelyard import store
from steelyard.report import figures, words
from steelyard.report.figures import Figure, extremes

if TYPE_CHECKING:
    from steelyard.report.figures import Series
    from steelyard.report.model import Comparison, Contender
    from steelyard.report.styles import Style
    from steelyard.trials import Trial

POINTS = 2000
"""Drawn per contender and input at most, about: the smallest and the largest step of every bin."""
STRIP_PIXELS = 92
PREPARING = ("training", "warm-up")
LEAST_SPAN = 0.08
"""Of the median: a strip shows at least this much, or the noise of a steady contender would fill it."""
EXPLAINED = (
    "Each contender's steps, round after round; hairlines part the rounds, each a fresh process. Grey: training and warm-up, which do not "
    "count; coloured: counted. First steps are left out, for they have a column of their own. Of long series the shortest and the longest step of "
    "each stretch are drawn; triangles mark steps beyond the scale. Flat stretches are blocks of which only the mean is known."
)


def step_times(comparison: Comparison, source: str, styles: dict[str, Style]) -> Figure | None:
    """Return one strip per contender: all steps of all rounds, one round after the other."""
    measured = [contender for contender in comparison.contenders if source in contender.speeds]
    if not measured:
        return None
    layout: dict[str, Any] = {"xaxis": figures.axis("steps, one round after the other", nticks=6, rangemode="tozero")}
    data, notes, shapes = [], [], []
    for row, contender in enumerate(measured):
        strip = _Strip(row, len(measured), styles[contender.cell.arm])
        data += strip.traces(contender, source)
        layout[strip.axis_key] = strip.axis()
        notes.append(figures.note(figures.plain(contender.title) + strip.beyond, x=0, y=1, yref=f"{strip.axis_name} domain", yshift=2, font={"size": 13}))
        shapes += [_border(start, strip.axis_name) for start in strip.starts[1:]]
    layout["xaxis"]["anchor"] = _axis_name(len(measured) - 1)
    says = EXPLAINED if source == next(iter(comparison.rankings)) else "The same for the resident batch: what is left when no input has to be fetched."
    frame = figures.frame(STRIP_PIXELS * len(measured) + 70, annotations=notes, shapes=shapes, hovermode="closest", **layout)
    frame["margin"] = {"l": 8, "r": 12, "t": 24, "b": 40}
    return Figure(f"steps/{comparison.group}/{source}", f"Step times, {words.SHORT_INPUTS[source]}", says, data, frame)


class _Strip:
    """One contender's part of the plot."""

    def __init__(self, row: int, rows: int, style: Style) -> None:
        self.axis_name, self.axis_key = _axis_name(row), "yaxis" + _axis_name(row)[1:]
        self.starts: list[int] = []
        self.beyond = ""
        self._row, self._rows, self._style = row, rows, style
        self._low, self._high = 0.0, 1.0

    def traces(self, contender: Contender, source: str) -> list[dict[str, Any]]:
        parts = [(trial, _preparing(trial, source), trial.steps_ns(source) / 1e9) for trial in contender.trials]
        total = sum(len(before) + len(counted) for _, before, counted in parts) or 1
        counted = np.concatenate([part[2] for part in parts])
        self._scale(counted)
        grey, bright, position = _Line(), _Line(), 0
        for trial, before, after in parts:
            self.starts.append(position)
            for line, values in ((grey, before), (bright, after)):
                line.add(values, position, max(1, round(POINTS / 2 * len(values) / total)), store.round_of(trial)[0])
                position += len(values)
        return [
            self._trace(grey, {"color": figures.QUIET, "width": 1}, "not counted"),
            self._trace(bright, {"color": self._style.colour, "width": 1.2}, "counted"),
            *self._beyond(grey, bright),
        ]

    def axis(self) -> dict[str, Any]:
        height = 1 / self._rows
        top = 1 - self._row * height
        domain = [max(0.0, top - height * 0.76), top]
        ticks = {"nticks": 4, "tickformat": "~s", "ticksuffix": "s", "tickfont": {"size": 11}}
        return figures.axis(domain=domain, range=[self._low, self._high], **ticks)

    def _scale(self, counted: Series) -> None:
        low, middle, high = (float(value) for value in np.quantile(counted, (0.002, 0.5, 0.99)))
        span = max(high - low, LEAST_SPAN * middle)
        self._low, self._high = max(0.0, low - 0.15 * span), max(high, middle) + 0.35 * span

    def _trace(self, line: _Line, look: dict[str, Any], said: str) -> dict[str, Any]:
        return {
            "x": line.x, "y": figures.rounded(line.y, 4), "customdata": line.rounds, "mode": "lines", "line": look, "yaxis": self.axis_name,
            "connectgaps": False, "hovertemplate": f"%{{y:.4s}}s, {said}<br>round %{{customdata}}<extra></extra>",
        }  # fmt: skip

    def _beyond(self, *lines: _Line) -> list[dict[str, Any]]:
        """Mark what lies above the scale at its edge, with its true value."""
        high = [(x, y, number) for line in lines for x, y, number in zip(line.x, line.y, line.rounds, strict=True) if x is not None and y > self._high]
        if not high:
            return []
        longest = max(y for _, y, _ in high)
        self.beyond = f" <span style='font-size:11px'>(longest {longest:.3g} s)</span>" if longest >= 1 else f" <span style='font-size:11px'>(longest {longest * 1e3:.3g} ms)</span>"
        return [{
            "x": [x for x, _, _ in high], "y": [figures.rounded([self._high])[0]] * len(high), "mode": "markers", "yaxis": self.axis_name,
            "marker": {"symbol": "triangle-up", "size": 7, "color": self._style.colour}, "cliponaxis": False,
            "customdata": [[float(f"{y:.4g}"), number] for _, y, number in high],
            "hovertemplate": "%{customdata[0]:.4s}s, beyond the scale<br>round %{customdata[1]}<extra></extra>",
        }]  # fmt: skip


class _Line:
    """Points of one colour, broken between rounds."""

    def __init__(self) -> None:
        self.x: list[int | None] = []
        self.y: list[float] = []
        self.rounds: list[int] = []

    def add(self, values: Series, start: int, bins: int, number: int) -> None:
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
    return {"type": "line", "x0": start, "x1": start, "yref": f"{axis_name} domain", "y0": 0, "y1": 1, "line": line, "layer": "below"}
