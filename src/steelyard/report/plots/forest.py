"""Intervals as a forest plot: ratios to the best with the band of practical equality, or means without a leader."""

import math
from typing import Any

from steelyard.analysis import formatting, headlines
from steelyard.analysis.model import Comparison, Contender
from steelyard.report import figures
from steelyard.report.columns import mean_heading
from steelyard.report.figures import Figure, plain
from steelyard.report.styles import Style, Styles
from steelyard.statistics import sentences
from steelyard.statistics.sentences import percent, together
from steelyard.wording.notation import quantity_text, scaled_unit
from steelyard.wording.task_words import capitalised

ROW_PIXELS = 46
WIDEST = 4.0
"""Intervals are clipped at this factor beyond the estimates, so that a very wide one does not compress the others."""
RATIOS = (
    "{label} of each contender divided by {best}{interval}. The grey band, {delta} to either side of 1, is the margin."
)
READING = " An interval inside the band means {together}; an interval that does not include 1 means a difference."
MEANS = "Mean {label} of each contender{interval}. There is no verdict on the {best}."
WITH_INTERVAL, WITHOUT_INTERVAL = ", with its interval", "; there are no intervals after one trial"
FEWEST_TICKS = 3
"""With fewer, a logarithmic axis has more ticks than 1, 2 and 5 in every decade: one tick alone shows no scale."""
SIZES = {"ns": 1e9, "bytes": 2.0**20}
"""Unit of a quantity -> the size of one unit on the axis (a second, a MiB). Other units are shown as texts show them."""
TICKS = {
    "x": {"ticksuffix": "x"},
    "ns": {"tickformat": "~s", "ticksuffix": "s"},
    "bytes": {"tickformat": ",~r", "ticksuffix": " MiB"},
}

Span = tuple[float, float, float]
"""Estimate, lower end, upper end."""


def figure(comparison: Comparison, source: str, styles: Styles) -> Figure | None:
    """Return the plot of one input; None if nothing was measured on it."""
    ranking, quantity = comparison.rankings[source], comparison.quantity
    measured = [contender for contender in comparison.contenders if source in contender.standings]
    if not measured:
        return None
    several = any(contender.standings[source].processes > 1 for contender in measured)
    interval = WITH_INTERVAL if several else WITHOUT_INTERVAL
    if ranking.leader is None:
        unit, axis, title = (
            formatting.unit_of(comparison),
            f"mean {quantity.label}",
            mean_heading(quantity, comparison.task),
        )
        spans = [_mean(contender, source, size_of(unit)) for contender in measured]
        shown = formatting.standing
        best = "fastest" if quantity.best == "fastest" else quantity.best_value
        caption = MEANS.format(label=quantity.label, best=best, interval=interval)
    else:
        unit, axis, title = "x", f"{quantity.label} / {quantity.best_value}", f"ratio to the {quantity.best}"
        spans = [_ratio(contender, source, ranking.leader) for contender in measured]
        shown = formatting.ratio
        label, best = capitalised(quantity.label), headlines.of_the_best(quantity)
        caption = RATIOS.format(label=label, best=best, interval=interval, delta=percent(ranking.delta_used))
        caption += READING.format(together=together(ranking.beyond_plan)) if several else ""
    texts = [(contender.title, str(shown(comparison, contender, source))) for contender in measured]
    low, high = _range(spans)
    layout = figures.rows(ROW_PIXELS * len(measured) + 64, axis_between(low, high, axis, unit), texts, -0.85, 8)
    if ranking.leader is not None:
        layout["shapes"] = _equality(ranking.delta_used)
    data = []
    for row, (contender, span, text) in enumerate(zip(measured, spans, texts, strict=True)):
        if span:
            # A bar from end to end would carry no information, and a single process has no interval.
            ends = [] if span[1] < low and span[2] > high else [max(span[1], low), min(span[2], high)]
            data += _interval(row, span[0], ends, contender, styles[contender.variant], "<br>".join(map(plain, text)))
    caption += _uncertified(measured)
    return Figure(f"ratios/{comparison.group}/{source}", capitalised(title), caption, data, layout, wide=True)


def _mean(contender: Contender, source: str, size: float) -> Span | None:
    found = contender.standings[source]
    return found.value / size, found.low / size, found.high / size


def _ratio(contender: Contender, source: str, leader: str) -> Span | None:
    if contender.case.id == leader:
        return 1.0, 1.0, 1.0
    found = contender.standings[source].ratio
    return (found.value, found.low, found.high) if found else None


def _equality(delta: float) -> list[dict[str, Any]]:
    """Return the band of practical equality and the line at 1."""
    tall = {"yref": "paper", "y0": 0, "y1": 1, "layer": "below"}
    band = {"type": "rect", "x0": 1 / (1 + delta), "x1": 1 + delta, "fillcolor": figures.BAND, "line": {"width": 0}}
    one = {"type": "line", "x0": 1, "x1": 1, "line": {"width": 1, "color": figures.MUTED}}
    return [{**band, **tall}, {**one, **tall}]


def _interval(
    row: int, value: float, ends: list[float], contender: Contender, style: Style, hover: str
) -> list[dict[str, Any]]:
    certified = contender.proof.state == "certified"
    line = {"color": style.colour, "width": 3, "dash": "solid" if certified else "dot"}
    edge = {"width": 0 if certified else 2, "color": style.colour}
    marker = {"symbol": style.symbol_of(contender), "size": 11, "color": style.colour, "line": edge}
    bar = {"x": figures.rounded(ends), "y": [row, row], "mode": "lines", "line": line, "hoverinfo": "skip"}
    point = {"x": figures.rounded([value]), "y": [row], "mode": "markers", "marker": marker}
    return [*([bar] if ends else []), {**point, "hovertemplate": f"{hover}<extra></extra>"}]


def size_of(unit: str) -> float:
    """Return how many of a unit make one unit of its axis."""
    return SIZES[unit] if unit in SIZES else scaled_unit(unit, 1.0)[0]


def axis_between(low: float, high: float, title: str, unit: str) -> dict[str, Any]:
    """Return an axis for values in a unit of `TICKS`: logarithmic where its ends differ by more than a factor of 3."""
    if high / low <= 3:
        more = TICKS.get(unit, {"ticksuffix": f" {plain(scaled_unit(unit, 1.0)[1])}"})
        return figures.axis(title, range=[low, high], nticks=7, **more)
    # plotly.js itself labels 0.2 on a logarithmic axis as 2.
    ticks = _ticks(low, high, (1, 2, 5))
    if len(ticks) < FEWEST_TICKS:
        ticks = _ticks(low, high, (1, 1.5, 2, 3, 4, 5, 7))
    size = size_of(unit)
    labels = [f"{tick:g}x" if unit == "x" else plain(quantity_text(unit, tick * size)) for tick in ticks]
    limits = [math.log10(low), math.log10(high)]
    return figures.axis(title, type="log", range=limits, tickvals=ticks, ticktext=labels)


def _ticks(low: float, high: float, digits: tuple[float, ...]) -> list[float]:
    """Return the multiples of powers of ten between two ends."""
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    return [tick for decade in decades for digit in digits if low <= (tick := float(f"{digit}e{decade}")) <= high]


def _range(spans: list[Span | None]) -> tuple[float, float]:
    """Return the ends of the axis."""
    known = [span for span in spans if span]
    least, most = min(span[0] for span in known), max(span[0] for span in known)
    low = min(max(span[1], least / WIDEST) for span in known)
    high = max(min(span[2], most * WIDEST) for span in known)
    pad = max((high / low) ** 0.06, 1.01)
    return low / pad, high * pad


def _uncertified(measured: list[Contender]) -> str:
    uncertified = [contender.title for contender in measured if contender.proof.state != "certified"]
    return f" Hollow and dotted (not certified): {sentences.listed(uncertified)}." if uncertified else ""
