"""History -> one self-contained HTML page: a plot for each group, input and machine, every change, and every run."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING, Any

from plotly.offline import get_plotlyjs

from steelyard.analysis import headlines, history
from steelyard.errors import UserError
from steelyard.files import atomic
from steelyard.report import figures, page
from steelyard.report.figures import Figure
from steelyard.report.styles import style
from steelyard.report.terms import TERMS, Glossary
from steelyard.statistics.shifts import LOOKS
from steelyard.wording import notation

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from steelyard.analysis.history import History, Line

TEMPLATE = "history.html.jinja"
EXPLAINED = ("interval", "trial")
HEIGHT = 340
MOST_MARKERS = 400
"""Points of a plot up to which every run has a marker of its own; a browser draws lines much faster."""


def write(found: History, path: Path) -> Path:
    """Write the page; returns its path. UserError: it cannot be written."""
    try:
        atomic.write_text(path, render(found))
    except OSError as error:
        raise UserError(f"The page {path} cannot be written ({error.strerror}). Name another with --output.") from None
    return path


def render(found: History) -> str:
    """Return the page."""
    style_text, drawing = page.read("style.css"), page.read("draw.js")
    plots = [_plot(place, lines, found) for place, lines in enumerate(_charts(found.lines))]
    terms = Glossary({name: TERMS[name] for name in EXPLAINED})
    return page.environment(terms).get_template(TEMPLATE).render(
        found=found, terms=terms.texts, plots=plots, answer=history.answer(found), rows=[row(line) for line in found.lines],
        headings=HEADINGS, runs=_runs, error=history.ERROR, looks=LOOKS,
        figures=page.embedded([figure.as_dict() for figure in plots]), library=page.library() if plots else "",
        style=style_text, drawing=drawing, policy=page.policy([drawing, get_plotlyjs()], [style_text, ""]),
    )  # fmt: skip


HEADINGS = ("contender", "group", "input", "machine", "runs", "newest", "last change of level")


def row(line: Line) -> tuple[str, ...]:
    """Return the texts of a line under HEADINGS."""
    newest = line.newest
    last = line.changes[-1] if line.changes else None
    change = f"{history.changed(last.ratio)}, {last.after.when.date()}" if last else "none"
    change = f"creeps since about {line.creep.since.when.date()}" if line.creep else change
    return (
        newest.title, newest.group, headlines.SHORT_INPUTS[newest.input], line.runs[-1].machine[:8], str(len(line.runs)),
        notation.duration(newest.step_ns), change,
    )  # fmt: skip


def _runs(line: Line) -> Iterator[tuple[str, str, str, str]]:
    """Yield day, run, version and time per step of each run of a line, the newest first."""
    for run, point in reversed(list(zip(line.runs, line.points, strict=True))):
        yield str(run.when.date()), run.name, point.version, notation.duration(point.step_ns)


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
        HEIGHT, figures.LEGEND, xaxis=figures.axis(type="date"), hovermode="closest",
        yaxis=figures.axis(f"time per step, {unit}", rangemode="tozero"), margin={"l": 8, "r": 12, "t": 36, "b": 40},
    )  # fmt: skip
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
        "type": "scatter", "mode": "lines+markers" if marked or len(days) == 1 else "lines", "name": name, "x": days, "y": times,
        "line": {"color": look.colour, "width": 1.5, "dash": look.dash}, "marker": {"symbol": look.symbol, "size": 6},
        "text": [figures.plain(f"{run.name}, {point.version}") for run, point in zip(line.runs, line.points, strict=True)],
        "hovertemplate": f"{name}<br>%{{x}}<br>%{{y}} {unit}<br>%{{text}}<extra></extra>",
    }  # fmt: skip
    rings = [change.after.run for change in line.changes]
    at = [place for place, run in enumerate(line.runs) if run.run in rings]
    if at:
        yield {
            "type": "scatter", "mode": "markers", "name": f"{name}, new level", "showlegend": False,
            "x": [days[place] for place in at], "y": [times[place] for place in at], "hoverinfo": "skip",
            "marker": {"symbol": "circle-open", "size": 14, "color": look.colour, "line": {"width": 2}},
        }  # fmt: skip
