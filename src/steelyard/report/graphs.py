"""The graph of a training step before and after optimisation: what every pass removes, and the speed that the passes bring."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from steelyard.profiles.graphs import COSTS, HELP, Counted
from steelyard.report import formatting
from steelyard.report.beside import MeasuredArm, MeasuredGroup
from steelyard.report.model import Comparison, Contender
from steelyard.results.quantities import STEP_TIME
from steelyard.results.record import PASSES, Group
from steelyard.statistics.answer import is_wide
from steelyard.statistics.intervals import Ratio
from steelyard.statistics.sentences import NOT_ENOUGH

CAPTION = (
    "Operations of the graph of one training step, counted in a process of its own that measures nothing. The first line of a "
    "contender is the graph as its framework traced it. Counts of two frameworks are not compared: one operation of the one may "
    "be several of the other."
)
PASSES_CAPTION = (
    "The same step with other choices of passes. What is removed is the difference from the graph without any pass; a number "
    "below zero means that operations were added. Passes depend on each other, so what a pass removes alone is not what it adds "
    "to the others. Both are shown."
)
SPEED_CAPTION = (
    "A loss of speed is 1 less the ratio of speeds, and the time that is added is the ratio of times less 1. Both are the same "
    "measurement in other words, and large values differ: half the speed is twice the time."
)
HEADINGS = ["contender", "stage", "operations", *COSTS, "of the first"]
PASSES_HEADINGS = [
    "passes",
    "operations",
    "removed",
    "share",
    *(f"removed, {cost}" for cost in COSTS),
    "what one pass adds",
]
SPEED_HEADINGS = ["without", "compared with", "loss of speed", "interval", "added time", "interval"]
ALL, NONE = "all", "none"


@dataclass(frozen=True)
class PassTable:
    """How much of a contender's graph different sets of passes remove."""

    title: str
    rows: list[list[str]]


@dataclass(frozen=True)
class Section:
    """The contents of the section. `reasons`: (title, why its graph was not counted) pairs."""

    rows: list[list[str]]
    passes: list[PassTable]
    speeds: list[list[str]]
    reasons: list[tuple[str, str]]
    headings: list[str]
    passes_headings: list[str]
    speed_headings: list[str]
    caption: str
    passes_caption: str
    speed_caption: str
    helps: list[tuple[str, str]]


def section(comparison: Comparison) -> Section | None:
    """Return the section of a comparison; None where no graph was to be counted."""
    counted = [each for each in comparison.contenders if each.graphs]
    reasons = [(each.title, each.no_graph) for each in comparison.contenders if each.no_graph]
    if not counted and not reasons:
        return None
    rows = [row for each in counted for row in _stages(each)]
    tables = [PassTable(_without_passes(each), removed) for each in counted if (removed := _removed(each.graphs))]
    return Section(
        rows, tables, _speeds(comparison), reasons, HEADINGS, PASSES_HEADINGS, SPEED_HEADINGS, CAPTION, PASSES_CAPTION,
        SPEED_CAPTION, list(HELP.items()),
    )  # fmt: skip


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
    arms = [
        MeasuredArm(
            f"{key}/{value}", f"{_without_passes(each)}, passes {_words(value)}", each.case.framework, each.case.settings.mode,
            {name: str(other) for name, other in each.case.settings.knobs.items()} | {PASSES: value, "workers": "0"},
            f"{graph.total:,} nodes",
        )
        for (key, value), (each, graph) in counted.items()
    ]  # fmt: skip
    totals = {f"{key}/{value}": graph.total for (key, value), (_, graph) in counted.items()}

    def ratio(a: str, b: str) -> Ratio:
        found = totals[b] / totals[a]
        return Ratio(found, found, found, 1)

    missing = {each.environment.partition("@")[0]: each.reason for each in comparison.skipped}
    missing |= {each.case.framework: each.no_graph for each in comparison.contenders if each.no_graph}
    return MeasuredGroup(
        group.name, group.stands_for or f"{first.workload}:{first.preset}", first.task, first.batch, first.optimizer.name, arms,
        ratio, missing,
    )  # fmt: skip


def as_dict(contender: Contender) -> dict[str, Any]:
    """Return the counts of a contender as plain values."""
    stages = [
        {"stage": each.stage.stage, "unit": each.stage.unit, "passes": each.stage.passes, "total": each.total,
         "costs": dict(each.costs), "kinds": each.stage.kinds}
        for each in contender.graphs
    ]  # fmt: skip
    return {"stages": stages, "reason": contender.no_graph}


def _stages(contender: Contender) -> list[list[str]]:
    stages = [each for each in contender.graphs if not each.stage.passes]
    first = stages[0]
    return [
        [
            contender.title, each.stage.stage, f"{each.total:,} {each.stage.unit}", *(f"{each.costs[cost]:,}" for cost in COSTS),
            f"{each.total / first.total:.1%}" if each is not first and each.stage.unit == first.stage.unit else "",
        ]
        for each in stages
    ]  # fmt: skip


def _removed(graphs: Sequence[Counted]) -> list[list[str]]:
    found = by_passes(graphs)
    base = found.get(NONE)
    if not base:
        return []
    return [[NONE, f"{base.total:,}", *[""] * (len(PASSES_HEADINGS) - 2)]] + [
        [
            _words(value), f"{each.total:,}", f"{base.total - each.total:,}", f"{1 - each.total / base.total:.1%}",
            *(f"{base.costs[cost] - each.costs[cost]:,}" for cost in COSTS), added(value, found),
        ]
        for value, each in found.items()
        if value != NONE
    ]  # fmt: skip


def added(value: str, found: Mapping[str, Counted]) -> str:
    """Return what the last pass of a set removes in addition to the others, and what the pass that a set leaves out would remove.

    A set is written as the names of its passes, joined by `+`; the longest one has all passes.
    """
    chosen, longest = value.split("+"), max(found, key=lambda each: each.count("+")).split("+")
    before, parts = "+".join(chosen[:-1]), []
    if before in found and chosen == longest[: len(chosen)]:
        parts.append(f"{chosen[-1]}: {found[before].total - found[value].total:,}")
    left_out = [name for name in longest if name not in chosen]
    if len(left_out) == 1:
        parts.append(f"{left_out[0]} to the others: {found[value].total - found['+'.join(longest)].total:,}")
    return "; ".join(parts)


def _without_passes(contender: Contender) -> str:
    """Return a contender's title without the note that all passes ran."""
    return contender.title.replace(f", {PASSES} {ALL}", "")


def _words(value: str) -> str:
    return value.replace("+", " + ")


def _speeds(comparison: Comparison) -> list[list[str]]:
    """Return the loss of speed without some passes, for every two contenders that differ only in this knob."""
    if comparison.quantity.name != STEP_TIME.name:
        return []
    rows = []
    for each in comparison.contenders:
        whole = next((other for other in comparison.contenders if _is_whole(other, each)), None)
        found = slower(comparison, each, whole) if whole else None
        if whole and found:
            wide = is_wide(found.low, found.high)
            rows.append([
                each.title, whole.title,
                _percent(1 - 1 / found.value), NOT_ENOUGH if wide else _range(1 - 1 / found.low, 1 - 1 / found.high),
                _percent(found.value - 1), NOT_ENOUGH if wide else _range(found.low - 1, found.high - 1),
            ])  # fmt: skip
    return rows


def _is_whole(other: Contender, each: Contender) -> bool:
    """Return whether the other contender has all passes and is otherwise equal."""
    mine, others = each.case.settings, other.case.settings
    different = {name for name in mine.knobs if mine.knobs[name] != others.knobs.get(name)}
    return (
        each.case.environment == other.case.environment and mine.mode == others.mode and different == {PASSES}
        and others.knobs[PASSES] == ALL
    )  # fmt: skip


def slower(comparison: Comparison, each: Contender, whole: Contender) -> Ratio | None:
    """Return the ratio of the step time to that with all passes; None with fewer than two common rounds."""
    ranking = comparison.rankings.get(comparison.primary)
    verdict = ranking.between(each.case.id, whole.case.id) if ranking else None
    if not verdict or verdict.rounds < 2:
        return None
    return Ratio(verdict.ratio, verdict.low, verdict.high, verdict.rounds)


def _percent(value: float) -> str:
    return f"{100 * value:+.1f} %" if abs(value) < 10 else formatting.NO_VALUE


def _range(low: float, high: float) -> str:
    return f"{_percent(low)} to {_percent(high)}"
