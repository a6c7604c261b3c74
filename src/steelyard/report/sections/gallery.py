"""A gallery: a table for each network, size and set of settings, with a row for each run, and links to the pages of the runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from steelyard.report.blocks import Cell, Column, Facts, Heading, Headline, Paragraph, Role, Row, Strong, Table, aside
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
AFTER = ("certified", "method", "steelyard")
CERTIFIED = {"certified": "yes", "rejected": "REJECTED", "none": "none"}


def page(found: Gallery, pages: Mapping[str, str]) -> SmallPage:
    """Return the page of a gallery. `pages`: name of a run -> address of its own page, relative to this one."""
    heading = f"{_count(len(found.runs), 'run')} of {_count(found.machines, 'machine')}"
    answers = [
        Headline(table.sentence, f"{each.title}, {_size(size)}")
        for each in found.workloads
        for size, tables in each.sizes.items()
        for table in tables
        if table.sentence
    ]
    sections = [_section(each, place, pages) for place, each in enumerate(found.workloads, 1)]
    return SmallPage(
        heading,
        MARK,
        heading,
        QUESTION,
        [*answers, aside(NEVER, terms=True)],
        sections,
        ("certificate", "contender", "interval"),
        sorts=True,
    )


def _section(of: Workload, place: int, pages: Mapping[str, str]) -> PageSection:
    blocks = [block for size, tables in of.sizes.items() for block in _of_size(of, size, tables, pages)]
    return PageSection(of.title, f"network-{place}", blocks, code=of.name)


def _of_size(of: Workload, size: Size, tables: tuple[Together, ...], pages: Mapping[str, str]) -> Iterator[Block]:
    yield Heading(_size(size))
    for table in tables:
        if table.unlike:
            yield Paragraph((Strong(APART), _differing(table.unlike), "."), Role.ALARM)
        yield Facts(table.settings)
        yield _table(f"{of.title}, {_size(size)}", table, pages)


def _size(size: Size) -> str:
    return f"{size.preset}, {size.task}, batch {size.batch:,}"


def _differing(found: tuple[Unlike, ...]) -> str:
    return listed([f"{each.name} ({each.second} here, {each.first} there)" for each in found])


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
        Cell(entry.headline, "\n".join(entry.clauses), long_value=True, long_note=True),
        *(_result(entry.results.get(variant)) for variant in of.titles),
        _certified(entry),
        Cell(str(entry.method)),
        Cell(entry.steelyard or formatted.NO_VALUE),
    ]
    return Row(Cell(entry.run, state, link=pages[entry.run]), cells)


def _moment(entry: Entry) -> str:
    """Return the start of a run as `2026-11-29 16:58 UTC`, which sorts by time."""
    when = entry.when
    return f"{when:%Y-%m-%d %H:%M} {when.tzname() or ''}".strip()


def _machine(entry: Entry) -> Cell:
    host = dict(entry.host)
    processor = str(host.pop("cpu_model", "") or "not recorded")
    rest = [formatted.machine(host), entry.machine[:8]]
    return Cell(processor, "\n".join(filter(None, rest)), long_value=True, long_note=True)


def _result(of: Result | None) -> Cell:
    if of is None:
        return Cell(formatted.NO_VALUE)
    return Cell(of.ratio.value, "\n".join(filter(None, (of.ratio.interval, of.build))), long_note=True)


def _certified(entry: Entry) -> Cell:
    missing = [f"{each.title}: {CERTIFIED[each.certificate]}" for each in entry.not_certified]
    count = len(entry.results)
    if not missing:
        return Cell("yes" if count == 1 else f"all {count}")
    return Cell(f"{count - len(missing)} of {count}", "\n".join(missing), long_note=True)


def _count(number: int, thing: str) -> str:
    return f"{number} {thing}" if number == 1 else f"{number} {thing}s"
