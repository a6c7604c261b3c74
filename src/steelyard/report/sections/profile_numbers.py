"""Profiles in single numbers: a part of where the time goes on the page, and a section of its own on a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from steelyard.analysis import shares
from steelyard.profiles.quantities import QUANTITIES
from steelyard.report.blocks import ON_TERMINAL, Facts, Fold, Panel, aside, plain_table

if TYPE_CHECKING:
    from collections.abc import Iterator

    from steelyard.analysis.model import Comparison
    from steelyard.report.blocks import Block

HEADING = "Profiled steps in numbers"
CAPTION = "Each value is the mean over the profiled processes, with its 95 % confidence interval. One process has none."
READING = "How each number is read"


def on_page(comparison: Comparison) -> Iterator[Block]:
    """Yield the table and how it is read; nothing where no contender was profiled."""
    names, rows = table(comparison)
    if rows:
        yield aside(CAPTION)
        yield plain_table(comparison.title, HEADING, names, rows)
        yield Fold(READING, [Facts([(each.name, each.help) for each in QUANTITIES.values()])])


def on_terminal(comparison: Comparison) -> Iterator[Block]:
    """Yield the table under its heading; nothing where no contender was profiled."""
    names, rows = table(comparison)
    if rows:
        yield Panel(HEADING, [plain_table("", "", names, rows, media=ON_TERMINAL)], media=ON_TERMINAL)


def table(comparison: Comparison) -> tuple[list[str], list[list[str]]]:
    """Return headings, with a column for each profiled contender, and rows, with a quantity in each; no rows without any."""
    profiled = [each for each in comparison.contenders if each.profiles]
    names = ["", *(each.title for each in profiled)]
    if not profiled:
        return names, []
    rows = [
        [quantity.name, *(str(shares.formatted(quantity, shares.level(quantity, each))) for each in profiled)]
        for quantity in QUANTITIES.values()
    ]
    return names, [*rows, ["profiled processes", *(str(len(each.profiles)) for each in profiled)]]
