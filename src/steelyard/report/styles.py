"""How a contender looks on the whole page: one colour, one sign and one dash, so that colour never speaks alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from steelyard.report.model import Comparison

# Chosen by search: contrast of at least 3 with white and with the dark page, and at least 23 apart (CIE 1976)
# for normal sight and for each kind of colour blindness as modelled by Machado, Oliveira and Fernandes 2009.
COLOURS = ("#6892d1", "#c17013", "#8c3ed1", "#636784", "#c13a3a", "#a3907a")
SIGNS = (
    ("circle", "●"),
    ("square", "■"),
    ("diamond", "◆"),
    ("triangle-up", "▲"),
    ("triangle-down", "▼"),
    ("cross", "✚"),
    ("star", "★"),
)
DASHES = ("solid", "dash", "dot", "dashdot", "longdash")


@dataclass(frozen=True)
class Style:
    """`symbol` is a plot's name for the sign that text shows as `glyph`."""

    colour: str
    symbol: str
    glyph: str
    dash: str


def styles(comparisons: Iterable[Comparison]) -> dict[str, Style]:
    """Return arm -> style: the same contender looks the same in every workload of a page."""
    arms = sorted({contender.variant for comparison in comparisons for contender in comparison.contenders})
    return {arm: style(place) for place, arm in enumerate(arms)}


def style(place: int) -> Style:
    """Return the style of the contender at a place; pairs of colour and sign repeat after 42."""
    symbol, glyph = SIGNS[place % len(SIGNS)]
    return Style(COLOURS[place % len(COLOURS)], symbol, glyph, DASHES[place % len(DASHES)])
