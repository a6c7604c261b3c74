"""Results over time: the changes of every line, its plots and its runs, on a page and on a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from steelyard.analysis import headlines, history
from steelyard.report.blocks import (
    ON_PAGE,
    ON_SCREEN,
    ON_TERMINAL,
    Break,
    Bullets,
    Code,
    Facts,
    Fold,
    Heading,
    Headline,
    Plots,
    Strong,
    aside,
    line,
    plain_table,
)
from steelyard.report.plots import histories
from steelyard.report.small_page import PageSection, SmallPage
from steelyard.statistics.shifts import LOOKS
from steelyard.wording import notation

if TYPE_CHECKING:
    from collections.abc import Iterator

    from steelyard.analysis.history import History, Line
    from steelyard.report.blocks import Block, Part

HEADINGS = ("contender", "group", "input", "machine", "runs", "newest", "last change of level")
OF_RUNS = ("day", "run", "version", "time per step")
QUESTION = "Has a framework become faster or slower, and what moved at that time?"
BASIS = (
    "A line holds the runs of one case with the same settings, schedule, method and machine; numbers of different machines are "
    "never divided. In a history in which nothing has changed, a change is named with a chance of at most {error:.0f} %, all "
    "lines and {looks} looks together (one each night of a year), if runs scatter independently. Intervals are those of the "
    "level after a change, divided by the level before."
)


def page(found: History) -> SmallPage:
    """Return the page of a history."""
    of_study = f" of {found.study}" if found.study else ""
    heading = f"{found.study or 'All studies'} over time"
    return SmallPage(
        f"History{of_study}",
        f"history{of_study}",
        heading,
        QUESTION,
        list(_answer(found)),
        list(_sections(found)) if found.lines else [],
        ("interval", "trial"),
        draws=True,
    )


def lines(found: History) -> Iterator[Block]:
    """Yield what a terminal shows."""
    yield plain_table("", "", HEADINGS, [_row(each) for each in found.lines], media=ON_TERMINAL)
    yield line("")
    yield Headline(history.answer(found), media=ON_TERMINAL)
    yield from (line(f"{each.name}: {sentence}") for each in found.changed for sentence in each.sentences)


def _answer(found: History) -> Iterator[Block]:
    yield Headline(history.answer(found))
    if found.changed:
        yield Bullets([tuple(_changes(each)) for each in found.changed], terms=True, clauses=True)
    yield aside(BASIS.format(error=100 * history.ERROR, looks=LOOKS))


def _changes(of: Line) -> Iterator[Part]:
    yield Strong(of.name)
    yield " "
    yield Code(_machine(of))
    for sentence in of.sentences:
        yield Break()
        yield sentence


def _sections(found: History) -> Iterator[PageSection]:
    plots = Plots(histories.figures_of(found), media=ON_PAGE)
    yield PageSection("Time per step of each run", "plots", [plots], ON_SCREEN)
    rows = [_row(each) for each in found.lines]
    machines = [(fingerprint[:8], text) for fingerprint, text in found.machines.items()]
    table = plain_table("Lines", "Newest time per step and last change of every line", HEADINGS, rows)
    yield PageSection("Lines", "lines", [table, Heading("Machines"), Facts(machines, code=True)])
    yield PageSection("Runs", "runs", [_runs(each) for each in found.lines], ON_SCREEN)


def _row(of: Line) -> tuple[str, ...]:
    """Return the texts of a line under HEADINGS."""
    newest = of.newest
    last = of.changes[-1] if of.changes else None
    change = f"{history.changed(last.ratio)}, {last.after.when.date()}" if last else "none"
    change = f"creeps since about {of.creep.since.when.date()}" if of.creep else change
    return (
        newest.title,
        newest.group,
        headlines.SHORT_INPUTS[newest.input],
        _machine(of),
        str(len(of.runs)),
        notation.duration(newest.step_ns),
        change,
    )


def _machine(of: Line) -> str:
    return of.runs[-1].machine[:8]


def _runs(of: Line) -> Fold:
    """Return the runs of a line, the newest first."""
    rows = [
        (str(run.when.date()), run.name, point.version, notation.duration(point.step_ns))
        for run, point in reversed(list(zip(of.runs, of.points, strict=True)))
    ]
    table = plain_table(of.name, "Runs, the newest first", OF_RUNS, rows)
    return Fold(of.name, [table], _machine(of))
