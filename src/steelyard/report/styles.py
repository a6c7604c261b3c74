"""The style of a contender on the whole page: colour, symbol and dash, so that no distinction depends on colour alone."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from steelyard.analysis.model import Comparison, Contender

# A search chose them: contrast of at least 3 with the light and the dark page, and a colour difference of at least 23
# (CIE 1976) for normal vision and each kind of colour blindness as modelled by Machado, Oliveira and Fernandes 2009.
COLOURS = ("#6892d1", "#c17013", "#8c3ed1", "#636784", "#c13a3a", "#a3907a")
SYMBOLS = (
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
    """`symbol`: the name of the marker in plotly.js; `glyph`: the same marker as a character."""

    colour: str
    symbol: str
    glyph: str
    dash: str

    def symbol_of(self, contender: Contender) -> str:
        """Return the name of a contender's marker: hollow if it is not certified."""
        return self.symbol if contender.proof.state == "certified" else f"{self.symbol}-open"


Styles = Mapping[str, Style]
"""Variant -> style."""


def styles(comparisons: Iterable[Comparison]) -> dict[str, Style]:
    """Return variant -> style: the same variant has the same style in every workload of a page.

    Colours repeat after six contenders, so the smallest comparison comes first: its curves all have different colours.
    """
    groups = [sorted(contender.variant for contender in comparison.contenders) for comparison in comparisons]
    variants = dict.fromkeys(variant for group in sorted(groups, key=len) for variant in group)
    return {variant: style(place) for place, variant in enumerate(variants)}


def style(place: int) -> Style:
    """Return the style of the contender at an index; pairs of colour and symbol repeat after 42."""
    symbol, glyph = SYMBOLS[place % len(SYMBOLS)]
    return Style(COLOURS[place % len(COLOURS)], symbol, glyph, DASHES[place % len(DASHES)])
