"""The result of a run on a terminal."""

from rich.console import Console
from rich.text import Text

from steelyard.analysis import headlines
from steelyard.analysis.model import View
from steelyard.report import terminal_blocks
from steelyard.report.sections import OF_COMPARISON, on_terminal
from steelyard.report.sections.run_subject import RunSubject
from steelyard.report.sections.subject import Subject
from steelyard.report.styles import styles
from steelyard.results.quantities import STEP_TIME, in_task
from steelyard.wording.task_words import fill


def show(found: View) -> None:
    """Print the result of a run."""
    print_view(Console(highlight=False), found)


def print_view(console: Console, view: View) -> None:
    """Print the sections of every comparison in the order of the page, then those of the run."""
    if view.quantity is not STEP_TIME:
        console.print(
            f"\n{headlines.basis(in_task(view.quantity, view.task))} {fill(headlines.RULE, view.task)}", markup=False
        )
    for comparison in view.comparisons:
        _print_comparison(console, Subject(comparison, view.comparisons, styles([comparison]), view.name))
    for section in on_terminal():
        terminal_blocks.show(console, section.blocks(RunSubject(view)))


def _print_comparison(console: Console, subject: Subject) -> None:
    comparison = subject.comparison
    console.print()
    title = Text(f"{comparison.title}, {comparison.group}", style="bold")
    console.rule(title, align="left", characters="─", style="dim")
    console.print(Text(headlines.describe(comparison), style="dim"))
    for section in OF_COMPARISON:
        terminal_blocks.show(console, section.blocks(subject))
