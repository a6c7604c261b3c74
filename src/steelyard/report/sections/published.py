"""What the documents of a study published, beside what was measured."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from steelyard.analysis import published, published_rows
from steelyard.analysis.published_tables import lines
from steelyard.report.blocks import (
    ON_SCREEN,
    ON_TERMINAL,
    Bullets,
    Cell,
    Column,
    Fold,
    Heading,
    Link,
    Paragraph,
    Role,
    Row,
    Small,
    Strong,
    Table,
    aside,
    line,
    plain_table,
)
from steelyard.wording.formatted import NO_VALUE

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from steelyard.analysis.published import Documents
    from steelyard.analysis.published_rows import Cells
    from steelyard.analysis.published_tables import Table as Redone
    from steelyard.report.blocks import Block, Part
    from steelyard.report.sections.run_subject import RunSubject

HEADING = "Published and measured"
MEANINGS = {
    "same size": (
        "the whole measured interval is near the published ratio: within 25 %, and with at least half and at most twice of its "
        "difference. Of a bound such as “up to 5 %”, the whole interval lies within it"
    ),
    "same order": "the same one is better, by another factor or by one that the measurement does not tell",
    "compatible, not precise": "the interval holds ratios near the published one, others, and equality",
    "other size": (
        "no ratio in the interval is near the published one, and it holds equality or the document does not say who is better"
    ),
    "opposite order": "the other one is better",
    "open": "the measurement shows none of these",
}
READING = (
    "A ratio above 1x means that the first of the two is faster, or better in the quantity of its table. Seconds of other "
    "machines are not compared with those of this one; ratios and orders are."
)
LEVELS = (
    " Shares and counts have no second side: the published value is compared with the interval of the same value here, and is of "
    "the same size where the whole interval is within 10 % of it."
)
FIRST, FIRST_OF_LEVELS = "first over second", "contender"
HEADINGS = ("published", "measured here", "judgement")
VALUES = "values here"
FIGURES = ("network", "of", "quantity", "printed", "machine")
TODAY = "What is different today"
NAMES = 17
"""Characters of the column of names on a terminal, at least."""


def blocks(subject: RunSubject) -> Sequence[Block]:
    """Return the section; nothing for a study without documents."""
    view = subject.view
    if not view.published:
        return []
    documents = published.documents(view)
    on_page = _on_page(documents) if documents.answer else ()
    return [*on_page, *_on_terminal(documents)]


def anchor(table: Redone) -> str:
    """Return the name of the place on the page that describes the source of an entry."""
    return "source-" + re.sub(r"\W+", "-", table.published.entry)


def _on_page(documents: Documents) -> Iterator[Block]:
    yield Paragraph((READING + LEVELS if documents.has_levels else READING,))
    if documents.what_differs:
        yield Paragraph((documents.what_differs,))
    yield aside(*_meanings())
    for table in documents.tables:
        yield from _entry(table, documents.names_differences)
    for each in documents.settings:
        rows = plain_table(each.title, "", each.headings, each.rows)
        yield Fold(each.title, [aside(f"Versions: {each.versions}."), rows])
    yield Heading(TODAY, media=ON_SCREEN)
    yield Bullets([(sentence,) for sentence in documents.published.today], media=ON_SCREEN)
    if errors := documents.published.errors:
        which = "document" if len(documents.published.sources) == 1 else "documents"
        yield Heading(f"What is wrong or missing in the {which}", media=ON_SCREEN)
        items: list[tuple[Part, ...]] = [
            (f"{each.says} ", Small(f"{each.cite}, {lines(each.lines)}")) for each in errors
        ]
        yield Bullets(items, media=ON_SCREEN)


def _meanings() -> Iterator[Part]:
    pairs = list(MEANINGS.items())
    for word, meaning in pairs:
        yield Strong(word)
        yield f": {meaning}{'.' if word == pairs[-1][0] else '; '}"


def _entry(table: Redone, names_differences: bool) -> Iterator[Block]:
    known = table.published
    machine = f". Their machine: {known.machine}" if known.machine else ""
    yield Heading(known.title)
    yield aside(Link(table.source, anchor(table)), f"{machine}. Measured here: {table.quantity}.")
    for note in table.notes:
        yield aside(note, terms=True, media=ON_SCREEN)
    if table.rows:
        headings = (FIRST_OF_LEVELS if table.has_levels else FIRST, *HEADINGS, VALUES)
        caption = f"{known.title}: {table.quantity}, published and measured"
        rows = [_row(each, names_differences) for each in published_rows.cells(table)]
        yield Table("", caption, tuple(map(Column, headings)), rows, cards=True)
    if known.figures:
        cells = [
            (each.network or NO_VALUE, each.words or NO_VALUE, each.quantity, each.printed, each.machine or "not given")
            for each in known.figures
        ]
        summary = f"Published values that are not judged: {len(cells)}"
        yield Fold(summary, [plain_table(f"Values of {known.title}", "", FIGURES, cells)])


def _row(cells: Cells, names_differences: bool) -> Row:
    differences = cells.differences if names_differences else ""
    judgement = (
        Cell(cells.judgement, state=_state(cells.judgement))
        if cells.judgement
        else Cell(NO_VALUE, differences, long_note=True)
    )
    said, ratio = Cell(cells.said, cells.printed), Cell(cells.ratio.value, cells.ratio.interval)
    return Row(
        Cell(cells.sides, cells.network),
        (said, ratio, judgement, Cell(cells.values, cells.setting)),
        below=f"Document: {cells.settings}",
    )


def _state(judgement: str) -> str:
    """Return the name of a judgement's style."""
    return judgement.replace(",", "").replace(" ", "-")


def _on_terminal(documents: Documents) -> Iterator[Block]:
    """Yield what was measured. The page has the sources and the reasons of missing values."""
    yield Heading(HEADING, level=2, media=ON_TERMINAL)
    rows = [(table, each) for table in documents.tables for each in published_rows.cells(table)]
    measured = [(table, each) for table, each in rows if each.is_measured]
    if measured:
        columns = (Column(FIRST, least=NAMES), *map(Column, HEADINGS))
        shown = [_short_row(*each, documents.names_differences) for each in measured]
        yield Table("", "", columns, shown, media=ON_TERMINAL)
    missing = len(rows) - len(measured)
    yield line(Strong(documents.answer), f" Not measured here: {missing}." if missing else "")
    if documents.what_differs:
        yield aside(documents.what_differs, media=ON_TERMINAL)
    if documents.dispatch:
        yield Paragraph((documents.dispatch,), Role.ALARM, media=ON_TERMINAL)


def _short_row(table: Redone, cells: Cells, names_differences: bool) -> Row:
    quantity = table.published.quantity
    where = cells.network if quantity == published.USUAL else f"{cells.network}, {quantity}"
    about = f"{where}\nhere: {cells.setting}"
    if cells.differences and names_differences:
        about += f"\ndiffers: {cells.differences}"
    judgement = Cell(cells.judgement or NO_VALUE, state=_state(cells.judgement or "open"))
    ratio = Cell(cells.ratio.value, cells.ratio.interval)
    return Row(Cell(cells.sides, about), (Cell(cells.said), ratio, judgement))
