"""The effect of single settings: pairs of contenders of one framework that differ in exactly one setting."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from steelyard.report import formatting, largest_batch, scaling
from steelyard.report.formatting import NO_VALUE
from steelyard.report.words import said
from steelyard.results.quantities import LARGEST_BATCH, PEAK_MEMORY, PROCESS, STEP_TIME
from steelyard.results.record import PASSES
from steelyard.statistics.intervals import ratio_interval
from steelyard_worker.case import differences

if TYPE_CHECKING:
    from collections.abc import Callable

    from steelyard.report.largest_batch import Found
    from steelyard.report.model import Comparison, Contender
    from steelyard.results.quantities import Quantity
    from steelyard.statistics.intervals import Ratio

HEADING = "What settings bring"
CAPTION = (
    "Each contender with one setting that is not the usual one, beside the contender that has the usual value and is the same in "
    "all else. Time and memory are divided by those of the usual value; each interval is the 95 % interval of this pair alone."
)
SEARCHED = (
    "Each contender with one setting that is not the usual one, beside the contender that has the usual value and is the same in "
    "all else. A search tells the largest batch to an eighth of the power of two below it."
)
UNDECIDED = "undecided"


@dataclass(frozen=True)
class Effect:
    """A contender that differs in one setting from the contender `usual`, which has the default value.

    `time` per step and peak `memory` are ratios to those of `usual`; None if the two share no round, or if the largest
    batch was searched for: then `batches` has the batches of both, in this order.
    """

    contender: Contender
    usual: Contender
    setting: str
    time: Ratio | None = None
    memory: Ratio | None = None
    batches: tuple[Found, Found] | None = None

    @property
    def value(self) -> str:
        """The setting with its value, as in a title."""
        return _named(self.setting, self.contender)

    @property
    def usual_value(self) -> str:
        """The usual value."""
        return str(self.usual.case.settings.knobs[self.setting])

    @property
    def where(self) -> str:
        """The title that the two share, without the setting."""
        own = (self.value, _named(self.setting, self.usual))
        return ", ".join(part for part in self.usual.title.split(", ") if part not in own)


def effects(comparison: Comparison) -> list[Effect]:
    """Return the contenders that differ in one setting from one with its default, by setting and value.

    Both compute the same: contenders that failed, are not certified or compute something else are left out. Passes of a graph
    have a section of their own.
    """
    shown = [
        each
        for each in comparison.contenders
        if scaling.is_shown(comparison, each) and scaling.computation(each) == scaling.SAME
    ]
    found = [
        _effect(comparison, contender, usual, setting)
        for contender in shown
        for usual in shown
        if (setting := _only_difference(contender, usual)) and setting != PASSES
    ]
    return sorted(found, key=lambda each: (each.setting, each.value))


def _only_difference(contender: Contender, usual: Contender) -> str:
    """Return the only setting that differs, if it has its default in `usual`; otherwise an empty text."""
    different = differences(contender.case, usual.case)
    if len(different) != 1:
        return ""
    ((name, (_, value)),) = different.items()
    knob = name.removeprefix("settings.knobs.")
    return knob if knob != name and usual.facts.knobs.get(knob) == value else ""


def _effect(comparison: Comparison, contender: Contender, usual: Contender, setting: str) -> Effect:
    if comparison.quantity is LARGEST_BATCH:
        return Effect(contender, usual, setting, batches=(largest_batch.found(contender), largest_batch.found(usual)))

    def ratio(quantity: Quantity, source: str) -> Ratio | None:
        above, below = (
            quantity.of_rounds({trial.job.round: trial for trial in each.trials}, source) for each in (contender, usual)
        )
        return ratio_interval(above, below)

    time, memory = ratio(STEP_TIME, comparison.primary), ratio(PEAK_MEMORY, PROCESS)
    return Effect(contender, usual, setting, time, memory)


def _named(setting: str, contender: Contender) -> str:
    return f"{setting} {contender.case.settings.knobs[setting]}"


def in_short(comparison: Comparison) -> list[str]:
    """Return the effects of a setting, one sentence for all frameworks that have it."""
    by_value: dict[tuple[str, str], list[Effect]] = {}
    for each in effects(comparison):
        by_value.setdefault((each.value, each.usual_value), []).append(each)
    return [
        f"With {value} instead of {usual}: {'; '.join(parts)}."
        for (value, usual), found in by_value.items()
        if (parts := [part for each in found if (part := _in_short(each))])
    ]


def _in_short(effect: Effect) -> str:
    if effect.batches:
        own, usual = effect.batches
        text = f"in {effect.where} a batch of {own.largest:,} instead of {usual.largest:,}"
        return f"{text} ({UNDECIDED})" if own.may_equal(usual) else text
    known = [(effect.time, said("the time per {step}", effect.contender.case.task)), (effect.memory, "the peak memory")]
    parts = [f"{_brief(ratio)} {thing}" for ratio, thing in known if ratio]
    return f"in {effect.where} {' and '.join(parts)}" if parts else ""


def _brief(ratio: Ratio) -> str:
    return formatting.of_ratio(ratio).value + ("" if ratio.high < 1 or ratio.low > 1 else f" ({UNDECIDED})")


@dataclass(frozen=True)
class Section:
    """The table of the page, the sentences at the top of the page, and the lines of the terminal."""

    caption: str
    headings: list[str]
    rows: list[list[str]]
    in_short: list[str]
    lines: list[str]


def section(comparison: Comparison) -> Section | None:
    """Return the section of a comparison; None if no two contenders differ in exactly one setting."""
    found = effects(comparison)
    if not found:
        return None
    searched = comparison.quantity is LARGEST_BATCH
    columns = (
        ["largest batch", "of the usual value"]
        if searched
        else [said("time per {step}", comparison.task), "peak memory"]
    )
    return Section(
        SEARCHED if searched else CAPTION, ["contender", "instead of", *columns], [_row(each) for each in found],
        in_short(comparison), [": ".join((each.contender.title, _line(each))) for each in found],
    )  # fmt: skip


def _row(effect: Effect) -> list[str]:
    return [effect.contender.title, effect.usual_value, *_cells(effect)]


def _cells(effect: Effect) -> list[str]:
    if effect.batches:
        return [formatting.largest_batch(each).value for each in (effect.contender, effect.usual)]
    return [str(formatting.of_ratio(each)) if each else NO_VALUE for each in (effect.time, effect.memory)]


def _line(effect: Effect) -> str:
    first, second = _cells(effect)
    usual = f"with {effect.usual_value}"
    if effect.batches:
        return f"{first}, {usual} {second}."
    step = said("{step}", effect.contender.case.task)
    return f"{first} the time per {step} and {second} the peak memory that it has {usual}."


def as_dict(comparison: Comparison, name: Callable[[Contender], str]) -> list[dict[str, Any]]:
    """Return the figures for scripts; `name` is that of a contender of this comparison."""
    return [
        {
            "case": name(each.contender), "usual": name(each.usual), "setting": each.setting,
            "time": asdict(each.time) if each.time else None, "memory": asdict(each.memory) if each.memory else None,
            "batches": [asdict(one) for one in each.batches] if each.batches else None,
        }
        for each in effects(comparison)
    ]  # fmt: skip
