"""Runs of several machines side by side: a table for each group and input, on a page and on a terminal."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from steelyard.analysis.headlines import SHORT_INPUTS
from steelyard.report.blocks import ON_TERMINAL, Cell, Column, Facts, Headline, Row, Small, Strong, Table, aside, line
from steelyard.report.small_page import PageSection, SmallPage

if TYPE_CHECKING:
    from collections.abc import Iterator

    from steelyard.analysis.side_by_side import Cell as Measured
    from steelyard.analysis.side_by_side import SideBySide
    from steelyard.analysis.side_by_side import Table as Group
    from steelyard.report.blocks import Block

NEVER = "Numbers of different machines are never divided by each other: every ratio is to the best contender of the same run."
QUESTION = "Is the order of frameworks the same on every machine?"
CAPTION = "{} of each contender in each run"
DIFFERING = "Not the same in all runs: {}."


def page(found: SideBySide) -> SmallPage:
    """Return the page of runs side by side."""
    heading = f"{len(found.runs)} runs side by side"
    answers = [Headline(each.sentence, _name(each)) for each in found.tables if each.sentence]
    sections = [
        PageSection(each.group, f"table-{place}", list(_on_page(each, found)), code=SHORT_INPUTS[each.input])
        for place, each in enumerate(found.tables, 1)
    ]
    machines = PageSection("Runs and machines", "machines", [Facts(list(found.runs.items()))])
    return SmallPage(
        heading,
        "side by side",
        heading,
        QUESTION,
        [*answers, aside(NEVER, terms=True)],
        [*sections, machines],
        ("contender", "interval"),
    )


def lines(found: SideBySide) -> Iterator[Block]:
    """Yield what a terminal shows."""
    for each in found.tables:
        yield line(Strong(each.group), " ", Small(f"{each.input}, {each.quantity}"))
        yield replace(_table(each, found, "contender", " "), media=ON_TERMINAL)
        yield line(each.sentence)
        for differing in each.differing:
            yield line(DIFFERING.format(differing))
    yield line(NEVER)


def _name(table: Group) -> str:
    return f"{table.group}, {SHORT_INPUTS[table.input]}"


def _on_page(table: Group, found: SideBySide) -> Iterator[Block]:
    yield _table(table, found, table.quantity, "\n")
    if table.differing:
        yield aside(DIFFERING.format("; ".join(table.differing)))


def _table(table: Group, found: SideBySide, first: str, separator: str) -> Table:
    """Return the values of a group in each run. `separator`: what is between a value, its interval and its ratio."""
    columns = tuple(map(Column, (first, *found.labels)))
    rows = [Row(Cell(name), [_cell(each, separator) for each in cells]) for name, cells in table.rows.items()]
    return Table(_name(table), CAPTION.format(table.quantity), columns, rows)


def _cell(measured: Measured, separator: str) -> Cell:
    note = separator.join(filter(None, (measured.interval, measured.ratio)))
    return Cell(measured.value, note) if separator == "\n" else Cell(f"{measured.value} {note}".rstrip())
