"""Tables with a row for each contender, and their columns explained."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from steelyard.analysis import formatting
from steelyard.report import blocks
from steelyard.report.blocks import ON_PAGE, ON_TERMINAL, Cell, Facts, Fold, Row, Table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from steelyard.analysis.model import Contender
    from steelyard.report.columns import Column
    from steelyard.report.sections.subject import Subject
    from steelyard.wording.formatted import Formatted

CONTENDER, ON_TERMINALS = "contender", "framework version, mode"
CERTIFIED = "certified"
HOW_TO_READ = "How each column is read"


def on_page(
    subject: Subject,
    caption: str,
    contenders: Sequence[Contender],
    columns: Sequence[Column],
    source: str = "",
    *,
    linked: bool = False,
) -> Table:
    """Return the table of a page. `source`: the input that the columns are about, if they are about one.

    `linked`: whether each row can be linked to, which one table of an input may be.
    """
    shown = [blocks.Column(CONTENDER, terms=True)]
    if contenders:
        shown += [blocks.Column(column.heading, column.width, terms=True, help=column.help) for column in columns]
    rows = [_row(subject, contender, formatting.build(contender), columns, source) for contender in contenders]
    if linked:
        anchors = [f"{contender.case.id}-{source}" for contender in contenders]
        rows = [replace(row, anchor=anchor) for row, anchor in zip(rows, anchors, strict=True)]
    return Table(subject.comparison.title, caption, shown, rows, cards=True, media=ON_PAGE)


def on_terminal(
    subject: Subject, contenders: Sequence[Contender], columns: Sequence[Column], source: str = ""
) -> Table:
    """Return the table of a terminal, which has less room for what a contender is, and no caption."""
    shown = [blocks.Column(ON_TERMINALS)]
    shown += [blocks.Column(column.heading, column.width, breaks="throughput" in column.heading) for column in columns]
    rows = [_row(subject, contender, _version_and_mode(contender), columns, source) for contender in contenders]
    return Table("", "", shown, rows, cards=True, media=ON_TERMINAL)


def how_to_read(table: Table) -> Fold:
    """Return the explanations of a table's columns."""
    pairs = [(column.heading, column.help) for column in table.columns if column.help]
    return Fold(HOW_TO_READ, [Facts(pairs, terms=True)])


def _version_and_mode(contender: Contender) -> str:
    return ", ".join(filter(None, (contender.version, contender.mode)))


def _row(subject: Subject, contender: Contender, build: str, columns: Sequence[Column], source: str) -> Row:
    texts = [(column, column.format(subject.comparison, contender, source)) for column in columns]
    return Row(
        Cell(contender.name, build),
        [_cell(column, text, contender) for column, text in texts],
        subject.styles[contender.variant],
        contender.proof.state,
    )


def _cell(column: Column, text: Formatted, contender: Contender) -> Cell:
    """Return a value with its interval; the certificate is a link to its proof."""
    cell = Cell(text.value, text.interval)
    if column.heading != CERTIFIED:
        return cell
    return replace(cell, state=contender.proof.state, link=f"#proof-{contender.case.id}")
