"""The effects of single settings: a table on the page, a line for each on the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from steelyard.analysis import formatting, setting_effects
from steelyard.report.blocks import ON_DISPLAYS, Panel, aside, line, plain_table
from steelyard.results.quantities import LARGEST_BATCH
from steelyard.wording import formatted
from steelyard.wording.formatted import NO_VALUE
from steelyard.wording.task_words import fill

if TYPE_CHECKING:
    from collections.abc import Sequence

    from steelyard.analysis.setting_effects import Effect
    from steelyard.report.blocks import Block
    from steelyard.report.sections.subject import Subject

HEADING = "What settings bring"
CAPTION = (
    "Each contender with one setting that is not the usual one, beside the contender that has the usual value and is the same in "
    "all else. Time and memory are divided by those of the usual value; each interval is the 95 % interval of this pair alone."
)
SEARCHED = (
    "Each contender with one setting that is not the usual one, beside the contender that has the usual value and is the same in "
    "all else. A search tells the largest batch to an eighth of the power of two below it."
)


def blocks(subject: Subject) -> Sequence[Block]:
    """Return the section; nothing if no two contenders differ in exactly one setting."""
    comparison = subject.comparison
    effects = setting_effects.effects(comparison)
    if not effects:
        return []
    searched = comparison.quantity is LARGEST_BATCH
    columns = (
        ["largest batch", "of the usual value"]
        if searched
        else [fill("time per {step}", comparison.task), "peak memory"]
    )
    content = [
        aside(SEARCHED if searched else CAPTION),
        plain_table(comparison.title, HEADING, ["contender", "instead of", *columns], [_row(each) for each in effects]),
        *(line(f"{each.contender.title}: {_line(each)}") for each in effects),
    ]
    return [Panel(HEADING, content, media=ON_DISPLAYS)]


def _row(effect: Effect) -> list[str]:
    return [effect.contender.title, effect.usual_value, *_cells(effect)]


def _cells(effect: Effect) -> list[str]:
    if effect.batches:
        return [formatting.largest_batch(each).value for each in (effect.contender, effect.usual)]
    return [str(formatted.of_ratio(each)) if each else NO_VALUE for each in (effect.time, effect.memory)]


def _line(effect: Effect) -> str:
    first, second = _cells(effect)
    usual = f"with {effect.usual_value}"
    if effect.batches:
        return f"{first}, {usual} {second}."
    step = fill("{step}", effect.contender.case.task)
    return f"{first} the time per {step} and {second} the peak memory that it has {usual}."
