"""Runs of several machines side by side: every number with its machine, and ratios only within one machine."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from steelyard.analysis import formatting, same_settings
from steelyard.errors import UserError
from steelyard.statistics import agreement
from steelyard.wording import formatted
from steelyard_worker.case import differences

if TYPE_CHECKING:
    from collections.abc import Sequence

    from steelyard.analysis.model import Comparison, Contender, View

NOTHING = "-"
OWN = ("inputs",)
"""Fields of a case that are hashes of other fields."""


@dataclass(frozen=True)
class Cell:
    """One contender in one run: value with its interval, and its ratio to the best of the same run."""

    value: str = NOTHING
    interval: str = ""
    ratio: str = ""


@dataclass(frozen=True)
class Table:
    """One group on one input. `rows`: contender -> one cell for every run. `differing`: the settings that differ between runs.

    `sentence`: on how many machines the order is the same; empty for runs of one machine.
    """

    group: str
    input: str
    quantity: str
    rows: dict[str, list[Cell]]
    sentence: str
    differing: list[str]


@dataclass(frozen=True)
class SideBySide:
    """Runs with their machines, and a table for each group and input that at least two of them have."""

    runs: dict[str, str]
    labels: list[str]
    tables: list[Table]


def side_by_side(views: Sequence[View]) -> SideBySide:
    """Put runs side by side. UserError: no two of them share a group."""
    groups = dict.fromkeys(
        (each.group, source) for view in views for each in view.comparisons for source in each.rankings
    )
    found = [table for key in groups if (table := _table(views, *key))]
    if not found:
        raise UserError(f"Runs {', '.join(view.name for view in views)} have no group in common.")
    runs = {view.name: f"{formatted.machine(dict(view.record.host))} ({view.record.machine[:8]})" for view in views}
    return SideBySide(runs, _labels(views), found)


def _labels(views: Sequence[View]) -> list[str]:
    """Return one heading for every run: its machine, and its name where a machine has several runs."""
    machines = [view.record.machine for view in views]
    return [_label(view) + (f", {view.name}" if machines.count(view.record.machine) > 1 else "") for view in views]


def _label(view: View) -> str:
    return f"{view.record.host.get('cpu_model') or 'machine'} ({view.record.machine[:8]})"


def _table(views: Sequence[View], group: str, source: str) -> Table | None:
    columns = [
        next((each for each in view.comparisons if each.group == group and source in each.rankings), None)
        for view in views
    ]
    present = [each for each in columns if each]
    if len(present) < 2:
        return None
    names = list(dict.fromkeys(contender.variant for each in present for contender in each.contenders))
    titles = {contender.variant: contender.title for each in present for contender in each.contenders}
    rows = {titles[name]: [_cell(each, name, source) for each in columns] for name in names}
    return Table(group, source, present[0].quantity.label, rows, _sentence(views, columns, source), _differing(present))


def _of(comparison: Comparison | None, variant: str) -> Contender | None:
    return next((each for each in comparison.contenders if each.variant == variant), None) if comparison else None


def _cell(comparison: Comparison | None, variant: str, source: str) -> Cell:
    contender = _of(comparison, variant)
    if comparison is None or contender is None or source not in contender.standings:
        return Cell()
    value, ratio = formatting.standing(comparison, contender, source), formatting.ratio(comparison, contender, source)
    return Cell(value.value, value.interval, ratio.value)


def _sentence(views: Sequence[View], columns: Sequence[Comparison | None], source: str) -> str:
    """Return on how many machines the order is the same. If a machine has several runs, the newest counts."""
    newest = {}
    for view, comparison in sorted(zip(views, columns, strict=True), key=lambda each: each[0].record.started):
        if comparison:
            newest[view.record.machine] = (view, comparison)
    orders = {}
    for view, comparison in newest.values():
        titles = {each.case.id: each.title for each in comparison.contenders}
        orders[_label(view)] = agreement.machine_order(comparison.rankings[source], titles)
    found = agreement.agreement(orders)
    return agreement.sentence(found) if found else ""


def _differing(columns: Sequence[Comparison]) -> list[str]:
    """Return the settings in which the cases of a contender differ between runs, such as the number of threads."""
    found: dict[str, list[str]] = {}
    first = columns[0]
    for other in columns[1:]:
        for contender in first.contenders:
            same = _of(other, contender.variant)
            for name, values in differences(contender.case, same.case).items() if same else ():
                if name not in OWN:
                    seen = found.setdefault(same_settings.field(name), [])
                    seen += [text for value in values if (text := same_settings.shown(name, value)) not in seen]
    return [f"{name}: {', '.join(values)}" for name, values in found.items()]
