"""A gallery: a table for each network, size and set of settings, with a row for each run, and links to the pages of the runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from steelyard.analysis.formatting import CERTIFICATES
from steelyard.analysis.summaries import FEW_CLAUSES, FURTHER
from steelyard.report.blocks import (
    ON_SCREEN,
    Break,
    Bullets,
    Cell,
    Column,
    Heading,
    Link,
    Paragraph,
    Role,
    Row,
    Strong,
    Table,
    aside,
)
from steelyard.report.small_page import PageSection, SmallPage
from steelyard.statistics.sentences import listed
from steelyard.wording import formatted

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from steelyard.analysis.gallery import Entry, Gallery, Result, Size, Together, Workload
    from steelyard.analysis.same_settings import Unlike
    from steelyard.report.blocks import Block

MARK = "gallery"
QUESTION = "What have several people and machines measured, and which of it may be compared?"
NEVER = (
    "Every ratio is to the best contender of the same run. Times of different machines are never divided by each other. Rows of "
    "one table have the same method and settings; rows of different tables are not compared."
)
APART = "Not comparable with the first table of this size: "
BEFORE = ("date", "machine", "verdict")
AFTER = ("certified", "method")
LONG = 24
"""Letters of version, mode and settings that stand in one line."""


def page(found: Gallery, pages: Mapping[str, str]) -> SmallPage:
    """Return the page of a gallery. `pages`: name of a run -> address of its own page, relative to this one."""
    heading = f"{_count(len(found.runs), 'run')} of {_count(found.machines, 'machine')}"
    sections = [_section(each, place, pages) for place, each in enumerate(found.workloads, 1)]
    return SmallPage(
        heading,
        MARK,
        heading,
        QUESTION,
        list(_answer(found)),
        sections,
        ("certificate", "contender", "interval"),
        sorts=True,
    )


def _answer(found: Gallery) -> Iterator[Block]:
    """Yield on how many machines the order of contenders is the same, and links to the networks."""
    answers = [
        (Strong(f"{each.title}, {_size(size)}"), Break(), table.sentence)
        for each in found.workloads
        for size, tables in each.sizes.items()
        for table in tables
        if table.sentence
    ]
    if answers:
        yield Bullets(answers, clauses=True)
    yield aside(NEVER, terms=True)
    if len(found.workloads) > 1:
        links = [
            part for place, each in enumerate(found.workloads, 1) for part in (Link(each.title, _anchor(place)), " ")
        ]
        yield Paragraph(tuple(links), media=ON_SCREEN)


def _section(of: Workload, place: int, pages: Mapping[str, str]) -> PageSection:
    blocks = [block for size, tables in of.sizes.items() for block in _of_size(of, size, tables, pages)]
    return PageSection(of.title, _anchor(place), blocks, code=of.name)


def _anchor(place: int) -> str:
    return f"network-{place}"


def _of_size(of: Workload, size: Size, tables: tuple[Together, ...], pages: Mapping[str, str]) -> Iterator[Block]:
    yield Heading(_size(size))
    for table in tables:
        if table.unlike:
            yield Paragraph((Strong(APART), _differing(table.unlike), "."), Role.ALARM)
        yield aside("; ".join(f"{name}: {value}" for name, value in table.settings), ".")
        yield _table(f"{of.title}, {_size(size)}", table, pages)


def _size(size: Size) -> str:
    return f"{size.preset}, {size.task}, batch {size.batch:,}"


def _differing(found: tuple[Unlike, ...]) -> str:
    return listed(
        [f"{each.name} ({each.second} here, {each.first} there)" if each.first else each.name for each in found]
    )


def _table(title: str, of: Together, pages: Mapping[str, str]) -> Table:
    headings = ("run", *BEFORE, *of.titles.values(), *AFTER)
    rows = [_row(each, of, pages) for each in of.entries]
    return Table(title, "A row for each run", tuple(map(Column, headings)), rows, cards=True)


def _row(entry: Entry, of: Together, pages: Mapping[str, str]) -> Row:
    day, _, rest = _moment(entry).partition(" ")
    state = "" if entry.state == "complete" else f"{entry.state}: results so far"
    cells = [
        Cell(day, rest),
        _machine(entry),
        Cell(entry.headline, "\n".join(_clauses(entry)), long_value=True, long_note=True),
        *(_result(entry.results.get(variant)) for variant in of.titles),
        _certified(entry),
        Cell(str(entry.method)),
    ]
    return Row(Cell(entry.run, state, link=pages[entry.run]), cells)


def _moment(entry: Entry) -> str:
    """Return the start of a run as `2026-11-29 16:58 UTC`, which sorts by time."""
    when = entry.when
    return f"{when:%Y-%m-%d %H:%M} {when.tzname() or ''}".strip()


def _clauses(entry: Entry) -> Iterator[str]:
    yield from entry.clauses[:FEW_CLAUSES]
    if (further := len(entry.clauses) - FEW_CLAUSES) > 0:
        yield f"{FURTHER}: {further}"


def _machine(entry: Entry) -> Cell:
    host = dict(entry.host)
    processor = str(host.pop("cpu_model", "") or "not recorded")
    rest = [formatted.machine(host), entry.machine[:8]]
    return Cell(processor, "\n".join(filter(None, rest)), long_value=True, long_note=True)


def _result(of: Result | None) -> Cell:
    if of is None:
        return Cell(formatted.NO_VALUE)
    note = "\n".join(filter(None, (of.ratio.interval, of.build)))
    return Cell(of.ratio.value, note, long_note=len(of.build) > LONG)


def _certified(entry: Entry) -> Cell:
    missing = [f"{each.title}: {CERTIFICATES[each.certificate]}" for each in entry.not_certified]
    count = len(entry.results)
    if not missing:
        return Cell("yes" if count == 1 else f"all {count}")
    return Cell(f"{count - len(missing)} of {count}", "\n".join(missing), long_note=True)


def _count(number: int, thing: str) -> str:
    return f"{number} {thing}" if number == 1 else f"{number} {thing}s"
