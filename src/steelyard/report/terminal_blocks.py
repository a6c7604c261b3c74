"""Print blocks on a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich import table as rich_table
from rich.text import Text

from steelyard.report.blocks import ON_TERMINAL, Panel, Paragraph, Reasons, Role, Strong, Table, within

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rich.console import Console

    from steelyard.report.blocks import Block, Cell, Column, Part, Row

COLOURS = {"certified": "green", "rejected": "bold red", "none": "yellow"}
"""State of a certificate -> style."""
NARROWEST = 80
"""A narrower terminal shows as many columns as one of this width, in characters."""
NAMES = 17
"""Characters of the column of names in a table of values with intervals, at least."""


def show(console: Console, blocks: Iterable[Block]) -> None:
    """Print the blocks that a terminal shows."""
    for block in within(blocks, ON_TERMINAL):
        _show(console, block)


def _show(console: Console, block: Block) -> None:
    match block:
        case Panel():
            console.print()
            if block.heading:
                console.print(Text(block.heading, style="bold"))
            for part in block.blocks:
                _show(console, part)
        case Paragraph():
            console.print(Text.assemble(*map(_part, block.parts), style="dim" if block.role is Role.ASIDE else ""))
        case Table():
            console.print(_cards(block, console.width) if block.cards else _table(block, console.width))
        case Reasons():
            for name, sentence in block.pairs:
                console.print(Text.assemble((f"{name}: ", "bold"), sentence))
        case _:
            raise TypeError(f"A terminal cannot show a block of the kind {block.kind}.")


def _part(part: Part) -> str | tuple[str, str]:
    if isinstance(part, str):
        return part
    return (part.text, "bold") if isinstance(part, Strong) else part.text


def _table(block: Table, width: int) -> rich_table.Table:
    """Return a table with the columns that fit; the first one has the names of the rows."""
    shown = _empty()
    places = places_that_fit(block.columns, width)
    for place in places:
        shown.add_column(block.columns[place].heading)
    for row in block.rows:
        cells = [row.title, *row.cells]
        shown.add_row(*(_cell(cells[place], "bold" if place == 0 else "") for place in places))
    return shown


def _cards(block: Table, width: int) -> rich_table.Table:
    """Return a table with two lines per row: the values, and below them the intervals. What is not certified is dim."""
    shown = _empty()
    for place in (places := places_that_fit(block.columns, width)):
        column = block.columns[place]
        options = {"no_wrap": not column.breaks} if place else {"min_width": NAMES, "overflow": "fold"}
        shown.add_column(column.heading.replace(" ", "\n", 1), **options)
    for row in block.rows:
        cells = [row.title, *row.cells]
        shown.add_row(*(_two_lines(cells[place], row, is_name=place == 0) for place in places))
    return shown


def _empty() -> rich_table.Table:
    return rich_table.Table(box=None, pad_edge=False, header_style="dim", padding=(0, 2, 0, 0))


def places_that_fit(columns: Sequence[Column], width: int) -> list[int]:
    """Return the places of the columns that a terminal of this width shows."""
    return [place for place, column in enumerate(columns) if column.width and column.width <= max(width, NARROWEST)]


def _cell(cell: Cell, style: str) -> Text:
    return Text.assemble((cell.value, style), *(("\n", (cell.note, "dim")) if cell.note else ()))


def _two_lines(cell: Cell, row: Row, *, is_name: bool) -> Text:
    uncertain = "" if row.state == "certified" else "dim"
    style = "bold" if is_name else COLOURS.get(cell.state, uncertain)
    return Text.assemble((cell.value, style), "\n", (cell.note, "dim"))
