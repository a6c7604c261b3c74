"""Cost: what a step, a sample, an epoch and a training cost at the price that was given."""

from __future__ import annotations

from typing import TYPE_CHECKING

from steelyard.analysis import money
from steelyard.analysis.headlines import SHORT_INPUTS
from steelyard.report.blocks import EVERYWHERE, ON_DISPLAYS, Cell, Column, Panel, Paragraph, Role, Row, Table
from steelyard.wording.formatted import NO_VALUE, of_mean
from steelyard.wording.task_words import fill

if TYPE_CHECKING:
    from collections.abc import Sequence

    from steelyard.analysis.model import Comparison
    from steelyard.analysis.money import Cost
    from steelyard.report.blocks import Block
    from steelyard.report.sections.subject import Subject
    from steelyard.statistics.intervals import Location
    from steelyard.wording.prices import Price

HEADING = "Cost"
EVALUATIONS = " Epochs and trainings are without their evaluations."
MILLION = 1e6
"""What one step or one sample costs is too small a number to be read."""


def blocks(subject: Subject) -> Sequence[Block]:
    """Return the section; nothing where no price was given."""
    comparison, price = subject.comparison, subject.comparison.price
    if price is None:
        return []
    source, known = money.costs(comparison)
    where = f" Of the counted {{steps}} on the {SHORT_INPUTS[source]}." if source else ""
    said = f"At {price}. {money.basis(comparison)}{fill(where, comparison.task)}"
    said += EVALUATIONS if any(cost.training for cost in known) else ""
    table = [_table(comparison, price, known)] if known else []
    return [Panel(HEADING, [Paragraph((said,), Role.ASIDE, media=EVERYWHERE), *table], terms=True, media=ON_DISPLAYS)]


def _table(comparison: Comparison, price: Price, known: Sequence[Cost]) -> Table:
    """Return a row for each contender; costs of epochs only where epochs were trained."""
    columns: dict[str, list[Location | None]] = {
        fill("per million {steps}", comparison.task): [_many(cost.per_step) for cost in known],
        f"per million {comparison.unit}": [_many(cost.per_sample) for cost in known],
        "per epoch": [cost.per_epoch for cost in known],
        f"training of {_epochs(known)}": [cost.training for cost in known],
    }
    shown = {heading: cells for heading, cells in columns.items() if any(cells)}
    headings = ["contender", *(f"{price.currency} {heading}".strip() for heading in shown)]
    rows = [
        Row(Cell(cost.contender.name), [_cell(one) for one in cells])
        for cost, *cells in zip(known, *shown.values(), strict=True)
    ]
    return Table(comparison.title, HEADING, [Column(heading) for heading in headings], rows, media=ON_DISPLAYS)


def _epochs(known: Sequence[Cost]) -> str:
    counts = {cost.epochs for cost in known}
    return "all epochs" if len(counts) > 1 else f"{max(counts):,} epoch{'' if counts == {1} else 's'}"


def _many(one: Location) -> Location:
    return type(one)(MILLION * one.value_ns, MILLION * one.low_ns, MILLION * one.high_ns, one.processes)


def _cell(cost: Location | None) -> Cell:
    """Return a cost with its interval below it; the heading has the currency."""
    if cost is None:
        return Cell(NO_VALUE)
    text = of_mean("", (cost.value_ns, cost.low_ns, cost.high_ns), cost.processes)
    return Cell(text.value, text.interval)
