"""What to choose on a terminal, or as JSON."""

import json
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from steelyard.analysis import choices
from steelyard.analysis.goals import Wishes
from steelyard.analysis.model import Comparison, View
from steelyard.report import choosing, job_length
from steelyard.report.as_json import case_name, finite, length_of_job
from steelyard.report.styles import styles


def show(found: View, wishes: Wishes, as_json: bool = False) -> bool:
    """Print what to choose in every comparison of a run, or why that is impossible. Return whether any has an answer."""
    style = styles(found.comparisons)
    made = [(each, choosing.section(each, found.comparisons, style, wishes)) for each in found.comparisons]
    sections = [(comparison, section) for comparison, section in made if section]
    if as_json:
        values = [_as_dict(comparison, section) if section else _without(comparison) for comparison, section in made]
        print(json.dumps(finite(values), indent=1, allow_nan=False))
    else:
        console = Console(highlight=False)
        for comparison, section in made:
            if section:
                _print(console, comparison, section)
            else:
                _title(console, comparison)
                console.print(Text(f"{choices.why_none(comparison)}\n"))
    return any(section.found.choices for _, section in sections)


def _print(console: Console, comparison: Comparison, section: choosing.Section) -> None:
    _title(console, comparison)
    for name, sentence in section.answers:
        console.print(Text.assemble((f"{name}: ", "bold"), sentence))
    if section.rows:
        console.print()
        table = Table(*section.headings, box=None, pad_edge=False, header_style="dim", padding=(0, 2, 0, 0))
        for row in section.rows:
            table.add_row(*row)
        console.print(table)
    console.print()
    for each in section.trade_offs:
        console.print(Text(each.sentence))
    if length := job_length.section(comparison, styles([comparison])):
        console.print(Text(length.sentence))
    console.print()


def _title(console: Console, comparison: Comparison) -> None:
    title = Text(f"{comparison.title}, {comparison.group}", style="bold")
    console.rule(title, align="left", characters="─", style="dim")


def _without(comparison: Comparison) -> dict[str, Any]:
    """Return a comparison in which nothing can be chosen, with the reason."""
    return {
        "group": comparison.group, "title": comparison.title, "task": comparison.task, "choices": [],
        "reason": choices.why_none(comparison),
    }  # fmt: skip


def _as_dict(comparison: Comparison, section: choosing.Section) -> dict[str, Any]:
    names = {each.case.id: case_name(comparison, each) for each in comparison.contenders}
    return {
        "group": comparison.group, "title": comparison.title, "task": comparison.task, **choosing.as_dict(section, names),
        "job_length": length_of_job(comparison),
    }  # fmt: skip
