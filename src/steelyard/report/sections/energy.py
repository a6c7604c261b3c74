"""Energy: a table of what each contender uses, where the machine has a meter that can be read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from steelyard.analysis.energy import energy
from steelyard.analysis.headlines import SHORT_INPUTS
from steelyard.report.blocks import ON_DISPLAYS, Panel, aside, plain_table
from steelyard.statistics.sentences import listed
from steelyard.wording.formatted import NO_VALUE, of_mean
from steelyard.wording.notation import significant
from steelyard.wording.task_words import fill

if TYPE_CHECKING:
    from collections.abc import Sequence

    from steelyard.analysis.energy import Energy
    from steelyard.report.blocks import Block
    from steelyard.report.sections.subject import Subject

HEADING = "Energy"
CAPTION = (
    "Of the counted {steps} on the {source}, by {meters}. Meters count everything that runs on the machine, and what it uses "
    "while nothing runs. `steelyard report --quantity energy` ranks by it, with verdicts."
)


def blocks(subject: Subject) -> Sequence[Block]:
    """Return the section; nothing where no meter was read for long enough."""
    comparison = subject.comparison
    source, known = energy(comparison)
    if not known:
        return []
    meters = listed(sorted({name for one in known for name in one.meters}))
    caption = fill(CAPTION.format(steps="{steps}", source=SHORT_INPUTS[source], meters=meters), comparison.task)
    headings = ["contender", fill("per {step}", comparison.task), "per sample", "per epoch", "mean power"]
    table = plain_table(comparison.title, HEADING, headings, map(_row, known), media=ON_DISPLAYS)
    return [Panel(HEADING, [aside(caption, terms=True), table], media=ON_DISPLAYS)]


def _row(of: Energy) -> list[str]:
    mean = of.per_step
    per_epoch = NO_VALUE if of.per_epoch is None else f"{significant(of.per_epoch)} J"
    return [
        of.contender.name,
        str(of_mean("J", (mean.value_ns, mean.low_ns, mean.high_ns), mean.processes)),
        f"{significant(of.per_sample)} J",
        per_epoch,
        f"{significant(of.watts)} W",
    ]
