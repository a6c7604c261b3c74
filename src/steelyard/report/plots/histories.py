"""Lines over time: a plot for each group, input, machine and method, with the changes of its level."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING, Any

from steelyard.analysis import headlines
from steelyard.report import figures
from steelyard.report.figures import Figure
from steelyard.report.styles import style
from steelyard.wording import notation

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from steelyard.analysis.history import History, Line

HEIGHT = 340
MOST_MARKERS = 400
"""Points of a plot up to which every run has a marker of its own; a browser draws lines much faster."""


def figures_of(found: History) -> list[Figure]:
    """Return a plot for each group, input, machine and method."""
    return [_plot(place, lines, found) for place, lines in enumerate(_charts(found.lines))]


def _charts(lines: Sequence[Line]) -> Iterator[list[Line]]:
    """Yield the lines that share a plot: those of one group, input, machine and method."""
    by = sorted(lines, key=lambda each: each.newest.variant)
    for _, together in groupby(sorted(by, key=_chart), key=_chart):
        yield list(together)


def _chart(line: Line) -> tuple[Any, ...]:
    newest = line.runs[-1]
    return line.newest.group, line.newest.input, newest.machine, newest.method


def _plot(place: int, lines: list[Line], found: History) -> Figure:
    newest, machine = lines[0].newest, lines[0].runs[-1].machine
    scale, unit = notation.time_unit(min(line.newest.step_ns for line in lines))
    marked = sum(len(line.points) for line in lines) <= MOST_MARKERS
    traces = [trace for number, line in enumerate(lines) for trace in _traces(number, line, scale, unit, marked)]
    layout = figures.frame(
        HEIGHT,
        figures.LEGEND,
        xaxis=figures.axis(type="date"),
        hovermode="closest",
        yaxis=figures.axis(f"time per step, {unit}", rangemode="tozero"),
        margin={"l": 8, "r": 12, "t": 36, "b": 40},
    )
    caption = (
        f"Each point is a run, the geometric mean over its processes, on {found.machines[machine]}. "
        "Rings: the first run of a new level."
    )
    title = f"{newest.group}, {headlines.SHORT_INPUTS[newest.input]}"
    return Figure(f"history/{place}", title, caption, traces, layout, wide=True)


def _traces(number: int, line: Line, scale: float, unit: str, marked: bool) -> Iterator[dict[str, Any]]:
    look, newest = style(number), line.newest
    days = [run.when.isoformat() for run in line.runs]
    times = figures.rounded(point.step_ns / scale for point in line.points)
    name = figures.plain(newest.title)
    yield {
        "type": "scatter",
        "mode": "lines+markers" if marked or len(days) == 1 else "lines",
        "name": name,
        "x": days,
        "y": times,
        "line": {"color": look.colour, "width": 1.5, "dash": look.dash},
        "marker": {"symbol": look.symbol, "size": 6},
        "text": [
            figures.plain(f"{run.name}, {point.version}") for run, point in zip(line.runs, line.points, strict=True)
        ],
        "hovertemplate": f"{name}<br>%{{x}}<br>%{{y}} {unit}<br>%{{text}}<extra></extra>",
    }
    rings = [change.after.run for change in line.changes]
    at = [place for place, run in enumerate(line.runs) if run.run in rings]
    if at:
        yield {
            "type": "scatter",
            "mode": "markers",
            "name": f"{name}, new level",
            "showlegend": False,
            "x": [days[place] for place in at],
            "y": [times[place] for place in at],
            "hoverinfo": "skip",
            "marker": {"symbol": "circle-open", "size": 14, "color": look.colour, "line": {"width": 2}},
        }
