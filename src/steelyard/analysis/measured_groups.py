"""The measurements of a run's groups in one quantity, prepared for the comparison with documents."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from steelyard.analysis import (
    comparing,
    formatting,
    graphs,
    measured_settings,
    no_exchange,
    scaling,
    scores,
    shares,
    trainings,
)
from steelyard.analysis.matching import MeasuredContender, MeasuredGroup
from steelyard.profiles import quantities as profiled
from steelyard.results.quantities import NODES, QUANTITIES, STEP_TIME
from steelyard.statistics.claims import WEAK_SCALING
from steelyard.statistics.intervals import Ratio, ratio_interval
from steelyard.statistics.scores import QUANTITIES as SCORES
from steelyard_worker.strategy import name_of, parts_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from steelyard.analysis.model import Comparison, Contender, Source
    from steelyard.analysis.scaling import Weak
    from steelyard.plan.run_plan import Group
    from steelyard.profiles.quantities import ProfileQuantity
    from steelyard_worker.case import Case

NO_PROFILE = "It was not profiled."
ONE_PROFILE = "They have fewer than two profiled processes each, so there is no interval."
WEAK_LABEL = "time per step against one device alone with the same share of work, as the document's formula has it"


def label(quantity: str) -> str:
    """Return a quantity in running text."""
    known = QUANTITIES.get(quantity) or profiled.QUANTITIES.get(quantity)
    return known.label if known else {**scores.LABELS, WEAK_SCALING: WEAK_LABEL}.get(quantity, quantity)


def of_quantity(quantity: str, source: Source, comparisons: Sequence[Comparison]) -> list[MeasuredGroup]:
    """Return the groups of a run in a quantity, with their settings; empty for an unknown quantity.

    `comparisons`: those of the run, with the profiles of their contenders.
    """
    plan = source.plan
    found: list[MeasuredGroup] = []
    if quantity in QUANTITIES:
        ranked = replace(source, quantity=QUANTITIES[quantity])
        found = [measured(comparing.compare(ranked, group), group) for group in plan.groups]
    elif quantity in profiled.QUANTITIES:
        known = profiled.QUANTITIES[quantity]
        found = [profiled_group(each, plan.group(each.group), known) for each in comparisons]
    elif quantity == NODES:
        found = [graphs.beside(comparing.compare(source, group), group) for group in plan.groups]
    elif quantity in SCORES:
        found = scored(quantity, comparisons, plan.group)
    elif quantity == WEAK_SCALING:
        ranked = replace(source, quantity=STEP_TIME)
        found = weak([comparing.compare(ranked, group) for group in plan.groups], plan.group)
    return [_with_settings(source, each) for each in found]


def _with_settings(source: Source, found: MeasuredGroup) -> MeasuredGroup:
    group = source.plan.group(found.name)
    return replace(found, conditions=measured_settings.of_group(source.record, group), replaced=group.replaced)


def measured(comparison: Comparison, group: Group) -> MeasuredGroup:
    """Return the measurements of a group, without contenders that are wrong on purpose: no document refers to these."""
    ranking = comparison.rankings.get(comparison.primary)

    def ratio(a: str, b: str) -> Ratio | None:
        verdict = ranking.between(a, b) if ranking else None
        if not verdict or verdict.rounds < 2:
            return no_exchange.ratio(comparison, a, b)
        return Ratio(1 / verdict.ratio, 1 / verdict.high, 1 / verdict.low, verdict.rounds)

    return _group(comparison, group, [_measured_contender(comparison, each) for each in _meant(comparison)], ratio)


def profiled_group(comparison: Comparison, group: Group, quantity: ProfileQuantity) -> MeasuredGroup:
    """Return the values of a group's profiles in one quantity."""
    contenders = [_profiled_contender(each, quantity) for each in _meant(comparison)]
    valid = {contender.key for contender in contenders if not contender.reason}
    by_id = {
        each.case.id: shares.by_process(quantity, each) if each.case.id in valid else {}
        for each in comparison.contenders
    }

    def ratio(a: str, b: str) -> Ratio | None:
        if not (all(by_id[a].values()) and all(by_id[b].values())):
            return None  # a ratio to 0
        return ratio_interval(by_id[a], by_id[b]) if quantity.more_is_better else ratio_interval(by_id[b], by_id[a])

    return replace(_group(comparison, group, contenders, ratio), no_ratio=ONE_PROFILE)


def _meant(comparison: Comparison) -> list[Contender]:
    return [each for each in comparison.contenders if each.proof.on_purpose != "wrong on purpose"]


def _group(
    comparison: Comparison, group: Group, contenders: list[MeasuredContender], ratio: Callable[[str, str], Ratio | None]
) -> MeasuredGroup:
    first = group.variants[0].case
    return MeasuredGroup(
        name=group.name,
        cell=group.stands_for or f"{first.workload}:{first.preset}",
        task=first.task,
        batch=first.batch,
        optimizer=first.optimizer.name,
        contenders=contenders,
        ratio=ratio,
        missing={each.environment.partition("@")[0]: each.reason for each in comparison.skipped},
    )


def scored(quantity: str, comparisons: Sequence[Comparison], group: Callable[[str], Group]) -> list[MeasuredGroup]:
    """Return the scores of trainings: one group for all seeds, named after the first."""
    found = []
    for comparison in comparisons:
        if not (same := trainings.of_all_seeds(comparison, comparisons)):
            continue
        known = scores.OverSeeds(quantity, same)
        meant = {each.case.id: each for each in _meant(comparison)}
        contenders = [
            replace(_plain_contender(each), value=known.text(each.variant), reason=_score_reason(each, same, known))
            for each in meant.values()
        ]
        made = _group(comparison, group(comparison.group), contenders, _score_ratio(known, meant, contenders))
        found.append(replace(made, scores=True))
    return found


def _score_ratio(
    known: scores.OverSeeds, meant: dict[str, Contender], contenders: list[MeasuredContender]
) -> Callable[[str, str], Ratio | None]:
    valid = {contender.key for contender in contenders if not contender.reason}
    return lambda a, b: known.ratio(meant[a].variant, meant[b].variant) if {a, b} <= valid else None


def _score_reason(contender: Contender, same: Sequence[Comparison], known: scores.OverSeeds) -> str:
    """Return why the trainings of a contender are not compared: with one of its seeds it is not certified, or it failed."""
    alike = [each for comparison in same for each in comparison.contenders if each.variant == contender.variant]
    reasons = [reason for each in alike if (reason := _reason(each, has_value=True))]
    return reasons[0] if reasons else "" if known.text(contender.variant) else scores.NO_TRAINING


def weak(comparisons: Sequence[Comparison], group: Callable[[str], Group]) -> list[MeasuredGroup]:
    """Return the contenders on several devices, each with the single process that has the batch of one device (another group)."""
    found = []
    for comparison in comparisons:
        pairs = {(each.single.case.id, each.contender.case.id): each for each in scaling.weak(comparison, comparisons)}
        contenders = {
            each.case.id: _plain_contender(each) for pair in pairs.values() for each in (pair.single, pair.contender)
        }
        known = {each.case.id: each for pair in pairs.values() for each in (pair.single, pair.contender)}
        named = [
            replace(contender, reason=_reason(known[key], has_value=True)) for key, contender in contenders.items()
        ]
        found.append(_group(comparison, group(comparison.group), named, _weak_ratio(pairs, named)))
    return found


def _weak_ratio(
    pairs: dict[tuple[str, str], Weak], contenders: list[MeasuredContender]
) -> Callable[[str, str], Ratio | None]:
    """Return the function for the ratio of a single device's speed to that of one of several devices: 1 / (1 - overhead)."""
    valid = {contender.key for contender in contenders if not contender.reason}

    def ratio(a: str, b: str) -> Ratio | None:
        if (a, b) not in pairs or not {a, b} <= valid:
            return None
        overhead = pairs[a, b].overhead
        rounds = min(len(each.trials) for each in (pairs[a, b].single, pairs[a, b].contender))
        if not overhead.enough:  # its ends may be at 1 or beyond
            return None
        low, value, high = (1 / (1 - each) for each in (overhead.low, overhead.value, overhead.high))
        return Ratio(value, low, high, rounds)

    return ratio


def _measured_contender(comparison: Comparison, contender: Contender) -> MeasuredContender:
    standing = contender.standings.get(comparison.primary)
    value = formatting.standing(comparison, contender, comparison.primary).value if standing else ""
    return replace(_plain_contender(contender), value=value, reason=_reason(contender, bool(standing)))


def _plain_contender(contender: Contender) -> MeasuredContender:
    return contender_of(contender.case, contender.title)


def contender_of(case: Case, title: str) -> MeasuredContender:
    """Return a case as a variant that documents may refer to, before anything is measured."""
    settings = {name: str(value) for name, value in case.settings.knobs.items()} | {
        "workers": str(case.loader_workers),
        "strategy": name_of(case.strategy),
        "devices": str(parts_of(case.strategy)),
        "link": case.strategy.partition("@")[2],
    }
    return MeasuredContender(case.id, title, case.framework, case.settings.mode, settings)


def _profiled_contender(contender: Contender, quantity: ProfileQuantity) -> MeasuredContender:
    """Return a contender with its mean in a quantity of profiles. It is not compared if it has no certificate."""
    found = shares.level(quantity, contender)
    reason = _reason(contender, has_value=True) or ("" if found else NO_PROFILE)
    text = str(shares.formatted(quantity, found)) if found else ""
    return replace(_plain_contender(contender), value=text, reason=reason, level=None if reason else found)


def _reason(contender: Contender, has_value: bool) -> str:
    if contender.proof.state != "certified" and not no_exchange.is_one(contender):
        return f"{contender.title} is not certified."
    if contender.above_peak:
        return f"{contender.title} is faster than possible."
    if contender.failure:
        return f"{contender.title} failed."
    if not has_value:
        return f"{contender.title} was not measured in this quantity."
    return ""
