"""Print blocks on a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich import table as rich_table
from rich.text import Text

from steelyard.report.blocks import ON_TERMINAL, Panel, Paragraph, Reasons, Strong, Table, within

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rich.console import Console

    from steelyard.report.blocks import Block, Cell, Part


def show(console: Console, blocks: Iterable[Block]) -> None:
    """Print the blocks that a terminal shows."""
    for block in within(blocks, ON_TERMINAL):
        _show(console, block)


def _show(console: Console, block: Block) -> None:
    match block:
        case Panel():
            console.print()
            console.print(Text(block.heading, style="bold"))
            for part in block.blocks:
                _show(console, part)
        case Paragraph():
            console.print(Text.assemble(*map(_part, block.parts)))
        case Table():
            console.print(_table(block, console.width))
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
    found = rich_table.Table(box=None, pad_edge=False, header_style="dim", padding=(0, 2, 0, 0))
    kept = [place for place, column in enumerate(block.columns) if column.width and column.width <= max(width, 80)]
    for place in kept:
        found.add_column(block.columns[place].heading)
    for row in block.rows:
        cells = [row.title, *row.cells]
        found.add_row(*(_cell(cells[place], "bold" if place == 0 else "") for place in kept))
    return found


def _cell(cell: Cell, style: str) -> Text:
    return Text.assemble((cell.value, style), *(("\n", (cell.note, "dim")) if cell.note else ()))
