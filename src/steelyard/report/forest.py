"""Intervals as a forest plot: ratios to the best with the band of practical equality, or means without a leader."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from steelyard.report import figures, formatting
from steelyard.report.columns import mean_heading
from steelyard.report.figures import Figure
from steelyard.report.notation import quantity_text
from steelyard.statistics import sentences
from steelyard.statistics.sentences import percent

if TYPE_CHECKING:
    from steelyard.report.model import Comparison, Contender
    from steelyard.report.styles import Style

ROW_PIXELS = 46
WIDEST = 4.0
"""Intervals are clipped at this factor beyond the estimates, so that a very wide one does not compress the others."""
RATIOS = (
    "{label} of each contender divided by {best}, with its interval. The grey band, {delta} to either "
    "side of 1, marks practical equality. An interval inside the band means practically the same; an interval that does "
    "not include 1 means a difference."
)
MEANS = "Mean {label} of each contender with its interval. There is no verdict on the {best}."
SIZES = {"ns": 1e9, "bytes": 2.0**20}
"""Unit of a quantity -> the size of one unit on the axis: a second, a MiB; others are shown as they are."""
TICKS = {
    "x": {"ticksuffix": "x"},
    "ns": {"tickformat": "~s", "ticksuffix": "s"},
    "bytes": {"tickformat": ",~r", "ticksuffix": " MiB"},
}

Span = tuple[float, float, float]
"""Estimate, lower end, upper end."""


def figure(comparison: Comparison, source: str, styles: dict[str, Style]) -> Figure | None:
    """Return the plot of one input; None if nothing was measured on it."""
    ranking, quantity = comparison.rankings[source], comparison.quantity
    measured = [contender for contender in comparison.contenders if source in contender.standings]
    if not measured:
        return None
    label = quantity.label
    if ranking.leader is None:
        size = SIZES.get(quantity.unit, 1.0)
        spans: list[Span | None] = [
            (each.value / size, each.low / size, each.high / size)
            for each in (contender.standings[source] for contender in measured)
        ]
        texts = [str(formatting.standing(comparison, contender, source)) for contender in measured]
        unit, axis, title = formatting.unit_of(comparison), f"mean {label}", mean_heading(quantity)
        best = "fastest" if quantity.best == "fastest" else quantity.best_value
        caption = MEANS.format(label=label, best=best)
    else:
        spans = [_ratio(contender, source, ranking.leader) for contender in measured]
        texts = [str(formatting.ratio(comparison, contender, source)) for contender in measured]
        unit, axis, title = "x", f"{label} / {quantity.best_value}", f"ratio to the {quantity.best}"
        best, delta = formatting.of_the_best(quantity), percent(ranking.delta_used)
        caption = RATIOS.format(label=formatting.capitalised(label), best=best, delta=delta)
    data, notes = _rows(measured, spans, texts, styles)
    layout = _layout(spans, len(measured), notes, axis, unit)
    if ranking.leader is not None:
        layout["shapes"] = _equality(ranking.delta_used)
    name, title = f"ratios/{comparison.group}/{source}", formatting.capitalised(title)
    return Figure(name, title, caption + _uncertified(measured), data, layout, wide=True)


def _equality(delta: float) -> list[dict[str, Any]]:
    """Return the band of practical equality and the line at 1."""
    tall = {"yref": "paper", "y0": 0, "y1": 1, "layer": "below"}
    band = {"type": "rect", "x0": 1 / (1 + delta), "x1": 1 + delta, "fillcolor": figures.BAND, "line": {"width": 0}}
    one = {"type": "line", "x0": 1, "x1": 1, "line": {"width": 1, "color": figures.MUTED}}
    return [{**band, **tall}, {**one, **tall}]


def _ratio(contender: Contender, source: str, leader: str) -> Span | None:
    if contender.case.id == leader:
        return 1.0, 1.0, 1.0
    found = contender.standings[source].ratio
    return (found.value, found.low, found.high) if found else None


def _rows(
    measured: list[Contender], spans: list[Span | None], texts: list[str], styles: dict[str, Style]
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return traces and annotations: above each interval the title on the left and the numbers on the right."""
    data, notes = [], []
    edges = _range(spans)
    for row, (contender, span, text) in enumerate(zip(measured, spans, texts, strict=True)):
        title, numbers = figures.plain(contender.title), figures.plain(text)
        notes.append(figures.annotation(title, x=0, y=row, yshift=8, font={"size": 13}))
        notes.append(figures.annotation(numbers, x=1, y=row, yshift=8, xanchor="right"))
        if span:
            certified = contender.proof.state == "certified"
            data += _interval(row, span, edges, styles[contender.variant], certified, f"{title}<br>{numbers}")
    return data, notes


def _interval(
    row: int, span: Span, edges: tuple[float, float], style: Style, certified: bool, hover: str
) -> list[dict[str, Any]]:
    value, low, high = span
    line = {"color": style.colour, "width": 3, "dash": "solid" if certified else "dot"}
    symbol = style.symbol if certified else f"{style.symbol}-open"
    edge = {"width": 0 if certified else 2, "color": style.colour}
    marker = {"symbol": symbol, "size": 11, "color": style.colour, "line": edge}
    ends = figures.rounded([max(low, edges[0]), min(high, edges[1])])
    bar = {"x": ends, "y": [row, row], "mode": "lines", "line": line, "hoverinfo": "skip"}
    return [bar, {**_point(value, row), "marker": marker, "hovertemplate": f"{hover}<extra></extra>"}]


def _point(value: float, row: int) -> dict[str, Any]:
    return {"x": figures.rounded([value]), "y": [row], "mode": "markers"}


def _layout(spans: list[Span | None], rows: int, notes: list[dict[str, Any]], title: str, unit: str) -> dict[str, Any]:
    low, high = _range(spans)
    if high / low > 3:
        ticks = [tick for tick in _one_two_five(low, high) if low <= tick <= high]
        size = SIZES.get(unit, 1.0)
        labels = [f"{tick:g}x" if unit == "x" else figures.plain(quantity_text(unit, tick * size)) for tick in ticks]
        limits = [math.log10(low), math.log10(high)]
        across = figures.axis(title, type="log", range=limits, tickvals=ticks, ticktext=labels)
    else:
        across = figures.axis(
            title, range=[low, high], nticks=7, **TICKS.get(unit, {"ticksuffix": f" {figures.plain(unit)}"})
        )
    down = figures.axis(range=[rows - 0.6, -0.85], visible=False, fixedrange=True)
    return figures.frame(ROW_PIXELS * rows + 64, xaxis=across, yaxis=down, annotations=notes, hovermode="closest")


def _one_two_five(low: float, high: float) -> list[float]:
    """Return 1, 2 and 5 in every decade: plotly.js itself labels 0.2 on a logarithmic axis as 2."""
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    return [float(f"{digit}e{decade}") for decade in decades for digit in (1, 2, 5)]


def _range(spans: list[Span | None]) -> tuple[float, float]:
    known = [span for span in spans if span]
    least, most = min(span[0] for span in known), max(span[0] for span in known)
    low = min(max(span[1], least / WIDEST) for span in known)
    high = max(min(span[2], most * WIDEST) for span in known)
    pad = max((high / low) ** 0.06, 1.01)
    return low / pad, high * pad


def _uncertified(measured: list[Contender]) -> str:
    uncertified = [contender.title for contender in measured if contender.proof.state != "certified"]
    return f" Hollow and dotted (not certified): {sentences.listed(uncertified)}." if uncertified else ""
