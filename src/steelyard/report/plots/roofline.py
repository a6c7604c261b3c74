"""The plot of speed beside the limits of the machine (Williams, Waterman, Patterson 2009)."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from steelyard.report import figures
from steelyard.report.figures import Figure
from steelyard.statistics.sentences import percent
from steelyard.wording.notation import prefixed
from steelyard.wording.task_words import fill

if TYPE_CHECKING:
    from collections.abc import Sequence

    from steelyard.analysis.machine_limits import Point
    from steelyard.analysis.model import Comparison
    from steelyard.report.styles import Style, Styles
    from steelyard.statistics.roofline import Limits

CAPTION = (
    "Speed over the operations for each byte that {a_step} must move at least, both on logarithmic scales. The line is the limit "
    "of this machine: its fastest matrix product, and to the left of the bend the bandwidth of its memory."
)
CACHED = " Data that stays in the processor's caches is not bound by the sloping part."
HEIGHT = 380
MARGIN = 8.0
"""The horizontal axis goes beyond its outermost points by this factor."""


def figure(comparison: Comparison, points: Sequence[Point], styles: Styles) -> Figure:
    """Return the roofline: the limit as a line, and a point for each contender, of which there is one at least."""
    one = points[0].limits
    places = [one.bend, *(point.limits.intensity for point in points)]
    low, high = min(places) / MARGIN, max(places) * MARGIN
    roof = [(x, min(one.peak_flops, x * one.bandwidth)) for x in (low, one.bend, high)]
    speeds = [point.flops / 1e9 for point in points]
    bottom, top = min([*speeds, roof[0][1] / 1e9]) / 2, max([*speeds, one.peak_flops / 1e9]) * 2
    layout = figures.frame(
        HEIGHT,
        figures.LEGEND,
        hovermode="closest",
        xaxis=_axis("operations per byte, at most", low, high, ""),
        yaxis=_axis("", bottom, top, " GFLOP/s"),
    )
    data = [_roof(roof), *(_point(point, styles[point.contender.variant]) for point in points)]
    caption = fill(CAPTION, comparison.task) + (CACHED if any(_may_be_cached(point.limits) for point in points) else "")
    return Figure(f"roofline/{comparison.group}", "Speed and the limits of this machine", caption, data, layout)


def _may_be_cached(limits: Limits) -> bool:
    return limits.held_bytes <= limits.cache_bytes


def _roof(places: Sequence[tuple[float, float]]) -> dict[str, Any]:
    return {
        "x": figures.rounded(x for x, _ in places),
        "y": figures.rounded(y / 1e9 for _, y in places),
        "mode": "lines",
        "name": "limit of this machine",
        "line": {"color": figures.MUTED, "width": 2},
        "hoverinfo": "skip",
    }


def _point(point: Point, style: Style) -> dict[str, Any]:
    title = figures.plain(point.contender.title)
    share = percent(point.flops / point.limits.roof_flops)
    return {
        "x": figures.rounded([point.limits.intensity]),
        "y": figures.rounded([point.flops / 1e9]),
        "mode": "markers",
        "name": title,
        "marker": {"color": style.colour, "symbol": style.symbol_of(point.contender), "size": 11},
        "hovertemplate": f"{title}<br>{prefixed(point.flops)}FLOP/s, {share} of the limit<extra></extra>",
    }


def _axis(title: str, low: float, high: float, unit: str) -> dict[str, Any]:
    """Return a logarithmic axis with a tick at each power of ten."""
    ticks = [10.0**power for power in range(math.ceil(math.log10(low)), math.floor(math.log10(high)) + 1)]
    texts = [f"{tick:,.10g}{unit}" for tick in ticks]
    limits = [math.log10(low), math.log10(high)]
    return figures.axis(title, type="log", range=limits, tickvals=ticks, ticktext=texts)
