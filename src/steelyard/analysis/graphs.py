"""The graph of a training step before and after optimisation, by sets of passes; published statements about it."""

from collections.abc import Mapping, Sequence
from typing import Any

from steelyard.analysis.matching import MeasuredContender, MeasuredGroup
from steelyard.analysis.model import Comparison, Contender
from steelyard.plan.run_plan import PASSES, Group
from steelyard.profiles.graphs import Counted
from steelyard.results.quantities import STEP_TIME
from steelyard.statistics.intervals import Ratio

ALL, NONE = "all", "none"
WITHOUT, WITH = "without-", "with-"
SWITCHED = {WITHOUT: "all others", WITH: "all"}
"""Beginnings of choices that differ from all passes in one, and to what that pass adds."""


def by_passes(graphs: Sequence[Counted]) -> dict[str, Counted]:
    """Return {set of passes: graph}; empty where no set of passes was tried."""
    found = {each.stage.passes: each for each in graphs if each.stage.passes}
    if found:
        *_, run = [each for each in graphs if not each.stage.passes]
        found[ALL] = run
    return found


def beside(comparison: Comparison, group: Group) -> MeasuredGroup:
    """Return the sets of passes of a group as variants for published statements, which count nodes: fewer are better."""
    first = group.variants[0].case
    counted = {
        (each.case.id, value): (each, graph)
        for each in comparison.contenders
        for value, graph in by_passes(each.graphs).items()
    }
    contenders = [
        MeasuredContender(
            f"{key}/{value}",
            f"{without_passes(each)}, passes {words_of(value)}",
            each.case.framework,
            each.case.settings.mode,
            {name: str(other) for name, other in each.case.settings.knobs.items()} | {PASSES: value, "workers": "0"},
            f"{graph.total:,} nodes",
        )
        for (key, value), (each, graph) in counted.items()
    ]
    totals = {f"{key}/{value}": graph.total for (key, value), (_, graph) in counted.items()}

    def ratio(a: str, b: str) -> Ratio:
        found = totals[b] / totals[a]
        return Ratio(found, found, found, 1)

    missing = {each.environment.partition("@")[0]: each.reason for each in comparison.skipped}
    missing |= {each.case.framework: each.no_graph for each in comparison.contenders if each.no_graph}
    return MeasuredGroup(
        group.name,
        group.stands_for or f"{first.workload}:{first.preset}",
        first.task,
        first.batch,
        first.optimizer.name,
        contenders,
        ratio,
        missing,
    )


def as_dict(contender: Contender) -> dict[str, Any]:
    """Return the counts of a contender as plain values."""
    stages = [
        {
            "stage": each.stage.stage,
            "unit": each.stage.unit,
            "passes": each.stage.passes,
            "total": each.total,
            "costs": dict(each.costs),
            "kinds": each.stage.kinds,
        }
        for each in contender.graphs
    ]
    return {"stages": stages, "reason": contender.no_graph}


def added(value: str, found: Mapping[str, Counted]) -> str:
    """Return what the last pass of a set removes in addition to the others, and what the pass that a set leaves out would remove.

    A set is written as the names of its passes, joined by `+`; the longest one has all passes. `without-NAME` and `with-NAME`
    differ from all passes in one.
    """
    for prefix, others in SWITCHED.items():
        name = value.removeprefix(prefix)
        if name != value:
            more, fewer = (found[ALL], found[value]) if prefix == WITHOUT else (found[value], found[ALL])
            return f"{name} to {others}: {fewer.total - more.total:,}"
    chosen, longest = value.split("+"), max(found, key=lambda each: each.count("+")).split("+")
    before, parts = "+".join(chosen[:-1]), []
    if before in found and chosen == longest[: len(chosen)]:
        parts.append(f"{chosen[-1]}: {found[before].total - found[value].total:,}")
    left_out = [name for name in longest if name not in chosen]
    if len(left_out) == 1:
        parts.append(f"{left_out[0]} to the others: {found[value].total - found['+'.join(longest)].total:,}")
    return "; ".join(parts)


def without_passes(contender: Contender) -> str:
    """Return a contender's title without the note that all passes ran."""
    return contender.title.replace(f", {PASSES} {ALL}", "")


def words_of(value: str) -> str:
    for prefix in SWITCHED:
        value = value.replace(prefix, prefix.replace("-", " "))
    return value.replace("+", " + ")


def without_some_passes(comparison: Comparison) -> list[tuple[Contender, Contender, Ratio]]:
    """Return (contender without some passes, the one with all, ratio of their times per step) where no other setting differs.

    Empty if another quantity than the time per step is ranked.
    """
    if comparison.quantity.name != STEP_TIME.name:
        return []
    found = []
    for each in comparison.contenders:
        whole = next((other for other in comparison.contenders if _is_whole(other, each)), None)
        ratio = slower(comparison, each, whole) if whole else None
        if whole and ratio:
            found.append((each, whole, ratio))
    return found


def _is_whole(other: Contender, each: Contender) -> bool:
    """Return whether the other contender has all passes and is otherwise equal."""
    mine, others = each.case.settings, other.case.settings
    different = {name for name in mine.knobs if mine.knobs[name] != others.knobs.get(name)}
    return (
        each.case.environment == other.case.environment
        and mine.mode == others.mode
        and different == {PASSES}
        and others.knobs[PASSES] == ALL
    )


def slower(comparison: Comparison, each: Contender, whole: Contender) -> Ratio | None:
    """Return the ratio of the step time to that with all passes; None with fewer than two common rounds."""
    ranking = comparison.rankings.get(comparison.primary)
    verdict = ranking.between(each.case.id, whole.case.id) if ranking else None
    if not verdict or verdict.rounds < 2:
        return None
    return Ratio(verdict.ratio, verdict.low, verdict.high, verdict.rounds)
