"""Trade-offs of two goals: the contenders that no other beats in both, as a sentence and as a plot."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import geometric_mean
from typing import TYPE_CHECKING, Any

from steelyard.report import figures, forest, goals
from steelyard.report.figures import Figure
from steelyard.report.goals import NONE
from steelyard.report.notation import quantity_text
from steelyard.report.words import said
from steelyard.statistics import choice
from steelyard.statistics.decision import decide
from steelyard.statistics.sentences import listed

if TYPE_CHECKING:
    from collections.abc import Mapping

    from steelyard.report.model import Comparison, Contender
    from steelyard.report.styles import Style

FADED = 0.35
CAPTION = (
    "Lower and further left is better. Pale contenders are beaten: another one is shown to be better in one of the two and at "
    "least within the margin of it in the other. Means over processes."
)
START = " Time to start: imports, building, and by how much all {steps} before the steady ones take longer than these."
HEIGHT = 340
ROOM = 1.25
"""The axes end at this factor beyond the contenders."""

Values = dict[str, dict[int, float]]


@dataclass(frozen=True)
class TradeOff:
    """Two goals. `best`: the contenders that no other is shown to beat, sorted by the first goal; `sentence` names them."""

    goals: tuple[str, str]
    best: list[Contender]
    sentence: str
    figure: Figure


@dataclass(frozen=True)
class Axis:
    """One axis: the quantity in running text, its unit, and the values of contenders by round."""

    thing: str
    unit: str
    values: Values


def trade_offs(comparison: Comparison, able: list[Contender], styles: Mapping[str, Style]) -> list[TradeOff]:
    """Return speed against memory and against start. Empty after a single round; unrecorded quantities are left out."""
    if comparison.rankings[comparison.primary].rounds_run < 2:
        return []
    speed, memory = (goals.costs(goal, comparison, able, NONE) for goal in ("speed", "memory"))
    step = Axis(speed.thing, "ns", speed.values)
    against = [
        ("memory", Axis(memory.thing, "bytes", memory.values)),
        (
            "start",
            Axis("time to start", "ns", goals.starts(able)),
        ),
    ]
    found = [_trade_off(comparison, able, ("speed", name), step, axis, styles) for name, axis in against]
    return [each for each in found if each]


def _trade_off(
    comparison: Comparison,
    able: list[Contender],
    names: tuple[str, str],
    across: Axis,
    up: Axis,
    styles: Mapping[str, Style],
) -> TradeOff | None:
    shown = [each for each in able if across.values.get(each.case.id) and up.values.get(each.case.id)]
    if len(shown) < 2:
        return None
    ids, plan = [each.case.id for each in shown], comparison.rankings[comparison.primary].plan
    one, other = (decide({key: axis.values[key] for key in ids}, plan) for axis in (across, up))
    places = {key: (_mean(across, key), _mean(up, key)) for key in ids}
    left = sorted(choice.undominated(ids, one, other), key=places.__getitem__)
    by_id = {each.case.id: each for each in shown}
    sentence = _sentence([by_id[key].name for key in left], len(shown), across.thing, up.thing)
    figure = _figure(comparison, shown, left, places, across, up, styles)
    return TradeOff(names, [by_id[key] for key in left], sentence, figure)


def _sentence(names: list[str], shown: int, first: str, second: str) -> str:
    both = f"in {first} and {second}"
    if len(names) == 1:
        return f"{names[0]} is at least as good as every other {both}, and better in one of them."
    if len(names) == shown:
        return f"No contender is shown to beat another {both}: each is a trade-off, or not told apart."
    return f"No other contender is shown to beat {listed(names, 'or')} {both}; each of the rest is beaten."


def _mean(axis: Axis, key: str) -> float:
    return geometric_mean(axis.values[key].values())


def _figure(
    comparison: Comparison, shown: list[Contender], left: list[str], places: Mapping[str, tuple[float, float]], across: Axis,
    up: Axis, styles: Mapping[str, Style],
) -> Figure:  # fmt: skip
    scales = [forest.SIZES[axis.unit] for axis in (across, up)]
    spans = [[places[each.case.id][place] / scales[place] for each in shown] for place in (0, 1)]
    axes = [
        forest.axis_between(min(span) / ROOM, ROOM * max(span), axis.thing, axis.unit)
        for span, axis in zip(spans, (across, up), strict=True)
    ]
    points = [
        _point(each, x, y, each.case.id in left, styles[each.variant], (across, up))
        for each, x, y in zip(shown, *spans, strict=True)
    ]
    layout = figures.frame(HEIGHT, figures.LEGEND, hovermode="closest", xaxis=axes[0], yaxis=axes[1])
    name = f"trade-off/{comparison.group}/{up.unit}"
    caption = CAPTION + (said(START, comparison.task) if up.thing == "time to start" else "")
    title = f"{across.thing[:1].upper()}{across.thing[1:]} against {up.thing}"
    return Figure(name, title, caption, points, layout)


def _point(
    contender: Contender, x: float, y: float, is_best: bool, style: Style, axes: tuple[Axis, Axis]
) -> dict[str, Any]:  # fmt: skip
    title = figures.plain(contender.title)
    texts = (
        quantity_text(axis.unit, value * forest.SIZES[axis.unit]) for axis, value in zip(axes, (x, y), strict=True)
    )
    return {
        "x": figures.rounded([x]), "y": figures.rounded([y]), "mode": "markers", "name": title,
        "marker": {"symbol": style.symbol, "size": 12, "color": style.colour, "opacity": 1 if is_best else FADED},
        "hovertemplate": f"{title}<br>{figures.plain(', '.join(texts))}<extra></extra>",
    }  # fmt: skip
