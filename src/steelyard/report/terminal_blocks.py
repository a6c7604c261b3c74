"""Print blocks on a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich import table as rich_table
from rich.padding import Padding
from rich.text import Text

from steelyard.report.blocks import (
    ON_TERMINAL,
    Break,
    Heading,
    Headline,
    Notices,
    Panel,
    Paragraph,
    Reasons,
    Role,
    Table,
    within,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rich.console import Console

    from steelyard.analysis.notices import Notice
    from steelyard.report.blocks import Block, Cell, Column, Part, Row

COLOURS = {"certified": "green", "rejected": "bold red", "none": "yellow"}
"""State of a certificate -> style."""
NARROWEST = 80
"""A narrower terminal shows as many columns as one of this width, in characters."""
NAMES = 17
"""Characters of the column of names in a table of values with intervals, at least."""


PARTS = {"strong": "bold", "small": "dim"}
STYLES = {Role.ASIDE: "dim", Role.ALARM: "yellow"}
JUDGEMENTS = {
    "same-size": "green",
    "same-order": "green",
    "other-size": "yellow",
    "opposite-order": "bold red",
    "open": "dim",
    "compatible-not-precise": "dim",
}
SEVERITIES = {"error": "bold red", "warning": "yellow", "note": "dim"}
MOST_NAMED = 4
"""The number of contenders named in a shared warning; the page names all."""


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
            console.print(_paragraph(block))
        case Headline():
            console.print(Text(block.text, style="bold"))
        case Heading():
            console.print()
            console.rule(Text(block.text, style="bold"), align="left", characters="─", style="dim")
        case Notices():
            for notice in block.notices:
                console.print(_notice(notice))
        case Table():
            console.print(_cards(block, console.width) if block.cards else _table(block, console.width))
        case Reasons():
            for name, sentence in block.pairs:
                console.print(Text.assemble((f"{name}: ", "bold"), sentence))
        case _:
            raise TypeError(f"A terminal cannot show a block of the kind {block.kind}.")


def _paragraph(block: Paragraph) -> Padding | Text:
    text = Text.assemble(*map(_part, block.parts), style=STYLES.get(block.role, ""))
    return Padding(text, (0, 0, 0, 2)) if block.role is Role.DETAIL else text


def _part(part: Part) -> str | tuple[str, str]:
    if isinstance(part, str):
        return part
    if isinstance(part, Break):
        return "\n"
    return (part.text, PARTS[part.kind]) if part.kind in PARTS else part.text


def _table(block: Table, width: int) -> rich_table.Table:
    """Return a table with the columns that fit; the first one has the names of the rows."""
    shown = _empty()
    places = places_that_fit(block.columns, width)
    for place in places:
        column = block.columns[place]
        shown.add_column(column.heading, min_width=column.least or None, overflow="fold")
    for row in block.rows:
        cells = [row.title, *row.cells]
        shown.add_row(
            *(_cell(cells[place], "bold" if place == 0 else JUDGEMENTS.get(cells[place].state, "")) for place in places)
        )
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


def _notice(notice: Notice) -> rich_table.Table:
    grid = rich_table.Table.grid(padding=(0, 1))
    grid.add_column()
    grid.add_column(overflow="fold")  # the whole path of a file, however narrow the terminal is
    for sentence, subjects in notice.findings:
        severity = Text(notice.severity, SEVERITIES[notice.severity])
        named = subjects[:MOST_NAMED] if notice.in_ranges else subjects
        more = f" and {len(subjects) - len(named)} more" if len(subjects) > len(named) else ""
        grid.add_row(severity, Text(f"{'; '.join(named)}{more}: {sentence}"))
    grid.add_row("", Text(notice.advice, "dim"))
    return grid
