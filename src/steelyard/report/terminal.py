"""The result of a run on a terminal."""

from collections.abc import Iterable

from rich.console import Console
from rich.table import Table
from rich.text import Text

from steelyard.analysis import headlines, published, tuned, warnings
from steelyard.analysis.model import View
from steelyard.report import terminal_blocks
from steelyard.report.sections import OF_COMPARISON
from steelyard.report.sections.subject import Subject
from steelyard.report.styles import styles
from steelyard.results.quantities import STEP_TIME, in_task
from steelyard.wording import formatted
from steelyard.wording.task_words import fill

JUDGEMENTS = {"same size": "green", "same order": "green", "other size": "yellow", "opposite order": "bold red"}
# The number of contenders named in a shared warning; the page names all.
MOST_NAMED = 4
SEVERITIES = {"error": "bold red", "warning": "yellow", "note": "dim"}


def show(found: View) -> None:
    """Print the result of a run."""
    print_view(Console(highlight=False), found)


def print_view(console: Console, view: View) -> None:
    """Print tables, verdicts and warnings."""
    if view.quantity is not STEP_TIME:
        console.print(
            f"\n{headlines.basis(in_task(view.quantity, view.task))} {fill(headlines.RULE, view.task)}", markup=False
        )
    for comparison in view.comparisons:
        _print_comparison(console, Subject(comparison, view.comparisons, styles([comparison]), view.name))
    if tried := tuned.sentence(view):
        console.print(Text(tried))
    for each in view.missing:
        console.print(Text(f"{each.group}, {each.title}: Not measured. {each.reason}", style="dim"))
    if view.published:
        _print_published(console, published.section(view))
    _print_warnings(console, view)


def _print_published(console: Console, found: published.Section) -> None:
    """Print published and measured values. The page has the sources and the reasons of missing values."""
    console.print()
    console.rule(Text("Published and measured", style="bold"), align="left", characters="─", style="dim")
    table = Table(box=None, pad_edge=False, header_style="dim", padding=(0, 2, 0, 0))
    table.add_column(published.HEADINGS[0], min_width=17, overflow="fold")
    for heading in published.HEADINGS[1:4]:
        table.add_column(heading, overflow="fold")
    rows = [(entry.published.quantity, each) for entry in found.tables for each in entry.cells]
    for quantity, cells in (each for each in rows if each[1].is_measured):
        where = cells.network if quantity == STEP_TIME.name else f"{cells.network}, {quantity}"
        ratio = Text.assemble(cells.ratio.value, "\n", (cells.ratio.interval, "dim"))
        judgement = Text(cells.judgement or formatted.NO_VALUE, JUDGEMENTS.get(cells.judgement, "dim"))
        about = f"{where}\nhere: {cells.setting}"
        if cells.differences and found.names_differences:
            about += f"\ndiffers: {cells.differences}"
        table.add_row(Text.assemble((cells.sides, "bold"), "\n", (about, "dim")), cells.said, ratio, judgement)
    if table.rows:
        console.print(table)
    missing = sum(not each.is_measured for _, each in rows)
    console.print(Text.assemble((found.answer, "bold"), f" Not measured here: {missing}." if missing else ""))
    if found.what_differs:
        console.print(Text(found.what_differs, "dim"))
    if found.dispatch:
        console.print(Text(found.dispatch, "yellow"))


def _print_comparison(console: Console, subject: Subject) -> None:
    """Print the sections of a comparison, in the order of the page."""
    comparison = subject.comparison
    console.print()
    title = Text(f"{comparison.title}, {comparison.group}", style="bold")
    console.rule(title, align="left", characters="─", style="dim")
    console.print(Text(headlines.describe(comparison), style="dim"))
    for make in OF_COMPARISON.values():
        terminal_blocks.show(console, make(subject))


def _print_warnings(console: Console, view: View) -> None:
    """Print every kind of warning once, with its subjects, its sentence and its advice; then the notes, which need no action."""
    console.print()
    asking = [each for each in view.warnings if each.severity != "note"]
    if asking:
        console.print(Text("1 warning" if len(asking) == 1 else f"{len(asking)} warnings", style="bold"))
    _print_notices(console, asking)
    if notes := [each for each in view.warnings if each.severity == "note"]:
        console.print(Text("Notes", style="bold dim"))
        _print_notices(console, notes)
    if view.warnings:
        console.print()


def _print_notices(console: Console, found: Iterable[warnings.ResultWarning]) -> None:
    for notice in warnings.gather(found):
        grid = Table.grid(padding=(0, 1))
        grid.add_column()
        grid.add_column(overflow="fold")  # the whole path of a file, however narrow the terminal is
        for sentence, subjects in notice.findings:
            severity = Text(notice.severity, SEVERITIES[notice.severity])
            named = subjects[:MOST_NAMED] if notice.name in warnings.IN_RANGES else subjects
            more = f" and {len(subjects) - len(named)} more" if len(subjects) > len(named) else ""
            grid.add_row(severity, Text(f"{'; '.join(named)}{more}: {sentence}"))
        grid.add_row("", Text(notice.advice, "dim"))
        console.print(grid)
