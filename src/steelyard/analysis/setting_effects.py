"""The effect of single settings: pairs of contenders of one framework that differ in exactly one setting."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from steelyard.analysis import largest_batch, scaling
from steelyard.plan.run_plan import PASSES
from steelyard.results.quantities import LARGEST_BATCH, PEAK_MEMORY, PROCESS, STEP_TIME
from steelyard.statistics.intervals import ratio_interval
from steelyard.wording import formatted
from steelyard.wording.task_words import fill
from steelyard_worker.case import differences

if TYPE_CHECKING:
    from collections.abc import Callable

    from steelyard.analysis.largest_batch import Found
    from steelyard.analysis.model import Comparison, Contender
    from steelyard.results.quantities import Quantity
    from steelyard.statistics.intervals import Ratio

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
        return str(_value(self.setting, self.usual))

    @property
    def where(self) -> str:
        """The title that the two share, without the setting."""
        own = (self.value, _named(self.setting, self.usual))
        return ", ".join(part for part in self.usual.title_parts if part not in own)


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
    own, others = contender.case.settings.knobs, usual.case.settings.knobs
    changed = [name for name in own.keys() | others.keys() if own.get(name) != others.get(name)]
    # Comparing whole cases takes a hundred times as long, and most of the pairs of a sweep end here.
    if len(changed) != 1 or changed[0] not in usual.facts.knobs:
        return ""
    has_default = _value(changed[0], usual) == usual.facts.knobs[changed[0]]
    return changed[0] if has_default and len(differences(contender.case, usual.case)) == 1 else ""


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
    return f"{setting} {_value(setting, contender)}"


def _value(setting: str, contender: Contender) -> Any:
    """Return the value of a knob; one that the case leaves out has its default."""
    return contender.case.settings.knobs.get(setting, contender.facts.knobs.get(setting))


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
    known = [(effect.time, fill("the time per {step}", effect.contender.case.task)), (effect.memory, "the peak memory")]
    parts = [f"{_brief(ratio)} {thing}" for ratio, thing in known if ratio]
    return f"in {effect.where} {' and '.join(parts)}" if parts else ""


def _brief(ratio: Ratio) -> str:
    return formatted.of_ratio(ratio).value + ("" if ratio.high < 1 or ratio.low > 1 else f" ({UNDECIDED})")


def as_dict(comparison: Comparison, name: Callable[[Contender], str]) -> list[dict[str, Any]]:
    """Return the figures for scripts; `name` is that of a contender of this comparison."""
    return [
        {
            "case": name(each.contender),
            "usual": name(each.usual),
            "setting": each.setting,
            "time": asdict(each.time) if each.time else None,
            "memory": asdict(each.memory) if each.memory else None,
            "batches": [asdict(one) for one in each.batches] if each.batches else None,
        }
        for each in effects(comparison)
    ]
