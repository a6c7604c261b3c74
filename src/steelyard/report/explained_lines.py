"""Where the time of a step goes, in the terminal; between two contenders as a waterfall."""

from collections.abc import Collection, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Column, Table
from rich.text import Text

from steelyard.analysis import where_time_goes
from steelyard.analysis.model import Comparison, Contender, View
from steelyard.profiles import waterfall
from steelyard.report.as_json import case_name, finite
from steelyard.report.sections.where_time_goes import headings, rows
from steelyard.wording import notation

BAR = 24
"""Characters of the longest bar."""
WIDEST = 1000
"""The largest width of a table in characters."""

Falls = dict[str, tuple[str, Text]]
"""Class -> (change from the first to the second contender, its bar)."""


def show(found: View, wanted: Collection[str]) -> None:
    """Print where the time of a step goes, for these case ids."""
    console = Console(highlight=False)
    for comparison in found.comparisons:
        _show(console, comparison, wanted)


def as_dict(found: View, wanted: Collection[str], page: Path) -> dict[str, Any]:
    """Return where the time of a step goes, for these case ids, as plain values; times in nanoseconds by class."""
    comparisons = [_comparison(each, wanted) for each in found.comparisons]
    values: dict[str, Any] = finite({"run": found.name, "page": str(page), "comparisons": comparisons})
    return values


def _comparison(comparison: Comparison, wanted: Collection[str]) -> dict[str, Any]:
    def named(contender: Contender) -> str:
        return case_name(comparison, contender)

    return where_time_goes.as_dict(_only(comparison, wanted), named)


def _only(comparison: Comparison, wanted: Collection[str]) -> Comparison:
    """Return a comparison with these cases alone."""
    return replace(comparison, contenders=tuple(each for each in comparison.contenders if each.case.id in wanted))


def _show(console: Console, comparison: Comparison, wanted: Collection[str]) -> None:
    shown = _only(comparison, wanted)
    known = where_time_goes.where_time_goes(shown)
    if not known:
        return
    heading = Text(f"{comparison.title}, {comparison.group}", style="bold")
    console.rule(heading, align="left", characters="─", style="dim")
    if known.profiled:
        console.print(_fitting(console, headings(known), rows(known, comparison.task), _falls(shown)))
    for sentence in known.sentences:
        console.print(Text(sentence))
    for contender, reason in known.reasons:
        console.print(Text(f"{contender.title}: could not be profiled. {reason}", style="yellow"))


def _fitting(console: Console, names: Sequence[str], cells: Sequence[Sequence[str]], falls: Falls) -> Table:
    """Return the table of the classes; where it is too wide for the terminal, shares are below the times."""
    table = _table(names, cells, falls)
    if console.measure(table, options=console.options.update(width=WIDEST)).maximum <= console.width:
        return table
    return _table(names, [[text.replace(" (", "\n(") for text in row] for row in cells], falls)


def _table(names: Sequence[str], cells: Sequence[Sequence[str]], falls: Falls) -> Table:
    """Return the table of the classes, with columns wide enough for whole words."""
    columns = [
        Column(texts[0], min_width=max(len(word) for text in texts for word in text.split()))
        for texts in zip(names, *cells, strict=True)
    ]
    changes = ("change", "") if falls else ()
    table = Table(*columns, *changes, box=None, pad_edge=False, header_style="dim", padding=(0, 2, 0, 0))
    for row in cells:
        table.add_row(*row, *falls.get(row[0], ()))
    return table


def _falls(comparison: Comparison) -> Falls:
    """Return {class: (change, bar)} between two contenders; empty unless there are exactly two."""
    profiles = [each.profile for each in comparison.contenders if each.profile]
    if len(profiles) != 2:
        return {}
    falls = waterfall.waterfall(*(each.breakdown.classes for each in profiles))
    largest = max((abs(each.change_ns) for each in falls), default=0.0) or 1.0
    return {
        each.kind: (
            notation.change(each.change_ns),
            Text("█" * round(BAR * abs(each.change_ns) / largest), style="yellow" if each.change_ns > 0 else "blue"),
        )
        for each in falls
    }
