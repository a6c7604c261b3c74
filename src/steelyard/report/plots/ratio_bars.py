"""The ratios of a comparison as a small drawing that needs no script: an interval and a mark for each contender, on one axis.

Places across are in percent of the width, so that text has its size on a phone, too; places down are in pixels.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from steelyard.analysis import formatting
from steelyard.wording.task_words import capitalised

if TYPE_CHECKING:
    from collections.abc import Sequence

    from steelyard.analysis.model import Comparison, Contender
    from steelyard.report.styles import Style, Styles

ROW_PIXELS, AXIS_PIXELS = 40, 26
MOST_ROWS = 8
"""The most contenders that are drawn; the table has all."""
WIDEST = 4.0
"""Intervals are cut at this factor beyond the marks, so that a very wide one does not compress the others."""
INSET = 3.0
"""The free margin at either side, percent of the width."""


@dataclass(frozen=True)
class Bar:
    """One contender. `at`, `start`, `end`: its ratio and the ends of the interval in percent; `start` is None without one.

    `title` and `text` stand above the bar at its left and right; `down` is the place of the bar.
    """

    title: str
    text: str
    at: float
    start: float | None
    end: float | None
    down: int
    style: Style


@dataclass(frozen=True)
class RatioBars:
    """The drawing. `one`: the place of 1; `band`: the ends of the margin; `ticks`: (place, label) pairs; `height` in pixels.

    `label` says in words what is drawn, for those who cannot see it; `left_out`: how many contenders are not drawn.
    """

    label: str
    bars: Sequence[Bar]
    one: float
    band: tuple[float, float]
    ticks: Sequence[tuple[float, str]]
    height: int
    left_out: int


def ratio_bars(comparison: Comparison, source: str, styles: Styles) -> RatioBars | None:
    """Return the drawing of one input; None where fewer than two contenders have a ratio to the best."""
    ranking = comparison.rankings.get(source)
    known = [
        (each, span) for each in comparison.contenders if ranking and (span := _span(each, source, ranking.leader))
    ]
    if ranking is None or len(known) < 2:
        return None
    drawn = known[:MOST_ROWS]
    scale = _Scale([span for _, span in drawn], ranking.delta_used)
    bars = [_bar(comparison, each, source, span, scale, row, styles) for row, (each, span) in enumerate(drawn)]
    down = ROW_PIXELS * len(bars)
    label = f"{capitalised(comparison.quantity.label)} divided by that of the best: "
    label += "; ".join(f"{bar.title} {bar.text}" for bar in bars)
    return RatioBars(
        label,
        bars,
        scale.place(1.0),
        (scale.place(1 / (1 + ranking.delta_used)), scale.place(1 + ranking.delta_used)),
        scale.ticks(),
        down + AXIS_PIXELS,
        len(known) - len(drawn),
    )


def _span(contender: Contender, source: str, leader: str | None) -> tuple[float, float, float] | None:
    """Return ratio, lower and upper end; None where there is no valid ratio."""
    if source not in contender.standings or contender.proof.state != "certified" or contender.above_peak:
        return None
    if contender.case.id == leader:
        return 1.0, 1.0, 1.0
    ratio = contender.standings[source].ratio
    return (ratio.value, ratio.low, ratio.high) if ratio else None


class _Scale:
    """A logarithmic axis over the width."""

    def __init__(self, spans: Sequence[tuple[float, float, float]], delta: float) -> None:
        least, most = min(span[0] for span in spans), max(span[0] for span in spans)
        self.low = min([1 / (1 + delta), *(max(span[1], least / WIDEST) for span in spans)])
        self.high = max([1 + delta, *(min(span[2], most * WIDEST) for span in spans)])

    def place(self, value: float) -> float:
        """Return the place of a ratio, in percent of the width; one beyond the ends is at the end."""
        inside = min(max(value, self.low), self.high)
        share = math.log(inside / self.low) / math.log(self.high / self.low)
        return round(INSET + share * (100 - 2 * INSET), 2)

    def ticks(self) -> list[tuple[float, str]]:
        """Return places with labels: 1, and round ratios on its sides with room between them."""
        above = (1.02, 1.05, 1.1, 1.2, 1.5, 2, 3, 5, 10, 20, 50, 100, 200, 500, 1000)
        below = (0.98, 0.95, 0.9, 0.8, 0.5, 0.2, 0.1, 0.05, 0.02, 0.01)
        candidates = [1.0, *below, *above]
        found: dict[float, str] = {}
        for value in candidates:
            place = self.place(value)
            if self.low <= value <= self.high and all(abs(place - other) >= 12 for other in found):
                found[place] = f"{value:.3g}x"
        return sorted(found.items())


def _bar(
    comparison: Comparison,
    contender: Contender,
    source: str,
    span: tuple[float, float, float],
    scale: _Scale,
    row: int,
    styles: Styles,
) -> Bar:
    value, low, high = span
    # An interval from end to end would say nothing.
    tells = low < high and not (low <= scale.low and high >= scale.high)
    return Bar(
        contender.name,
        str(formatting.ratio(comparison, contender, source)),
        scale.place(value),
        scale.place(low) if tells else None,
        scale.place(high) if tells else None,
        ROW_PIXELS * row + 29,
        styles[contender.variant],
    )
