"""The plots of trade-offs between two goals."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from steelyard.analysis import trade_offs
from steelyard.report import figures
from steelyard.report.figures import Figure
from steelyard.report.plots import forest
from steelyard.wording.notation import quantity_text
from steelyard.wording.task_words import capitalised, fill

if TYPE_CHECKING:
    from collections.abc import Sequence

    from steelyard.analysis.model import Comparison, Contender
    from steelyard.analysis.trade_offs import Side, TradeOff
    from steelyard.report.styles import Style, Styles

FADED = 0.35
CAPTION = (
    "Lower and further left is better. Pale contenders are beaten: another one is shown to be better in one of the two and at "
    "least within the margin of it in the other. Means over processes."
)
ENERGY = "Energy is counted by the meters of the machine, which count all programs."
START = "Time to start: imports, building, and by how much all {steps} before the steady ones take longer than these."
HEIGHT = 340
ROOM = 1.25
"""The axes end at this factor beyond the contenders."""


def figures_of(comparison: Comparison, known: Sequence[TradeOff], styles: Styles) -> list[Figure]:
    """Return a plot for each trade-off; the first one says how all of them are read."""
    return [figure(comparison, one, styles, CAPTION if place == 0 else "") for place, one in enumerate(known)]


def figure(comparison: Comparison, known: TradeOff, styles: Styles, caption: str = CAPTION) -> Figure:
    """Return the plot, with a point for each contender; those that are beaten are pale."""
    points = [_point(each, known, styles[each.variant]) for each in known.able]
    layout = figures.frame(
        HEIGHT, figures.LEGEND, hovermode="closest", xaxis=_axis(known.across, known), yaxis=_axis(known.up, known)
    )
    across, up = known.across.thing, known.up.thing
    more = {trade_offs.START: fill(START, comparison.task)} | ({up: ENERGY} if known.up.unit == "J" else {})
    caption = f"{caption} {more.get(up, '')}".strip()
    title = f"{capitalised(across)} against {up}"
    return Figure(f"trade-off/{comparison.group}/{known.up.unit}", title, caption, points, layout)


def _axis(side: Side, known: TradeOff) -> dict[str, Any]:
    places = [_place(side, each) for each in known.able]
    return forest.axis_between(min(places) / ROOM, ROOM * max(places), side.thing, side.unit)


def _place(side: Side, contender: Contender) -> float:
    """Return where a contender is on an axis, in the unit of the axis."""
    return side.mean(contender.case.id) / forest.size_of(side.unit)


def _point(contender: Contender, known: TradeOff, style: Style) -> dict[str, Any]:
    title, sides = figures.plain(contender.title), (known.across, known.up)
    x, y = (_place(side, contender) for side in sides)
    texts = ", ".join(quantity_text(side.unit, side.mean(contender.case.id)) for side in sides)
    is_best = contender.case.id in {each.case.id for each in known.best}
    return {
        "x": figures.rounded([x]),
        "y": figures.rounded([y]),
        "mode": "markers",
        "name": title,
        "marker": {"symbol": style.symbol, "size": 12, "color": style.colour, "opacity": 1 if is_best else FADED},
        "hovertemplate": f"{title}<br>{figures.plain(texts)}<extra></extra>",
    }
