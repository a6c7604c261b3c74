"""The items of documents that a study can judge, according to the plans of its sizes, before anything is measured."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING

from steelyard.analysis.matching import MeasuredContender, MeasuredGroup, beside
from steelyard.analysis.measured_groups import contender_of
from steelyard.analysis.measured_settings import of_plan
from steelyard.errors import UserError
from steelyard.host import links
from steelyard.plan import resolve, studies
from steelyard.plan.options import Options
from steelyard.plan.run_plan import PASSES
from steelyard.profiles import quantities as profiled
from steelyard.published.documents import find
from steelyard.results.quantities import EVALUATION_TIME, NODES, OF_EPOCHS
from steelyard.statistics.claims import WEAK_SCALING
from steelyard.statistics.intervals import Level, Ratio
from steelyard.statistics.scores import LEAST_SEEDS, LOSS
from steelyard.statistics.scores import QUANTITIES as SCORES
from steelyard_worker.strategy import SINGLE, name_of, parts_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from steelyard.analysis.matching import Row
    from steelyard.plan.run_plan import Group, RunPlan
    from steelyard.published.gathering import PublishedTable
    from steelyard_worker.case import Case

PUBLISHED, SMALL = "P", ("C", "Q")
DEVICES = ("cuda", "ascend", "cpu")
# A ratio for every pair: only whether there is a judgement matters, not which.
SOME_RATIO, SOME_LEVEL = Ratio(1.0, 0.9, 1.1, LEAST_SEEDS), Level(1.0, 0.9, 1.1, LEAST_SEEDS)
TIMES_OF_EPOCHS = {each.name for each in OF_EPOCHS} - {EVALUATION_TIME.name}


@cache
def at_published_size() -> frozenset[str]:
    """Return the entries that can be judged at the published size, on the kind of device of their document."""
    return _entries([PUBLISHED], DEVICES)


@cache
def on_a_small_machine() -> frozenset[str]:
    """Return the entries that can be judged at the sizes for two cores, on a CPU."""
    return _entries(SMALL, ["cpu"])


@cache
def held() -> frozenset[str]:
    """Return every entry that a study's table [[published]] names, with those that it was computed from."""
    return _with_sources(table.entry for study in studies.all_studies().values() for table in study.published)


def _entries(sizes: Sequence[str], devices: Sequence[str]) -> frozenset[str]:
    found: set[str] = set()
    for study in studies.all_studies().values():
        for size in [size for size in sizes if size in study.sizes and study.published]:
            for device in devices:
                found |= _judgeable(study.name, size, device)
    return _with_sources(found)


def _with_sources(entries: Iterable[str]) -> frozenset[str]:
    named = set(entries)
    for name in list(named):
        document, entry = find(name)
        named |= {f"{document.short}:{source}" for source in entry.computed_from}
    return frozenset(named)


def _judgeable(study: str, size: str, device: str) -> set[str]:
    """Return the entries that a run of a study judges if everything works; none if no framework of it runs there."""
    try:
        found = planned_rows(study, size, device)
    except UserError:
        return set()
    return {table.entry for table, rows in found if any(row.judgement for row in rows)}


def planned_rows(study: str, size: str, device: str = "") -> list[tuple[PublishedTable, tuple[Row, ...]]]:
    """Return what a study is held against, each with the rows of a run in which everything works; their judgements are arbitrary.

    `device`: empty for those of the study. UserError: no framework of the study runs there.
    """
    with links.assumed():
        plan = resolve.plan(Options(study=study, size=size, device=device))
    return [(table, beside(table, _groups(plan, table))) for table in plan.published.tables]


def _groups(plan: RunPlan, table: PublishedTable) -> list[MeasuredGroup]:
    """Return the groups of a plan that have the quantity of a table, as if everything had been measured."""
    quantity = table.quantity
    able = [group for group in plan.groups if group.protocol.rounds_max > 1 and _has(plan, group, quantity)]
    if quantity in SCORES:
        able = [group for group in able if len(_seeds(group, able)) >= LEAST_SEEDS]
    if quantity == WEAK_SCALING:
        return [_measured(group, _contenders(group) + _singles(group, able), quantity) for group in able]
    return [
        _measured(group, _passes(group, table) if quantity == NODES else _contenders(group), quantity) for group in able
    ]


def _has(plan: RunPlan, group: Group, quantity: str) -> bool:
    schedule = group.protocol.schedule
    if quantity in TIMES_OF_EPOCHS or quantity == LOSS:
        return schedule.epochs > 0
    if quantity in SCORES:
        return schedule.epochs > 0 and schedule.evaluate_epochs
    if quantity in profiled.QUANTITIES:
        return plan.profiles > 1
    return group.graphs if quantity == NODES else True


def _measured(group: Group, contenders: list[MeasuredContender], quantity: str) -> MeasuredGroup:
    case = group.cases[0]
    return MeasuredGroup(
        group.name,
        group.stands_for or f"{case.workload}:{case.preset}",
        case.task,
        case.batch,
        case.optimizer.name,
        contenders,
        lambda *_: SOME_RATIO,
        {},
        conditions=of_plan(group),
        replaced=group.replaced,
        scores=quantity in SCORES,
    )


def _contenders(group: Group) -> list[MeasuredContender]:
    return [replace(contender_of(each.case, each.title), level=SOME_LEVEL) for each in group.variants]


def _singles(group: Group, among: Sequence[Group]) -> list[MeasuredContender]:
    """Return the single processes of other groups whose batch is that of one of this group's parts."""
    first = group.cases[0]
    batches = {first.batch // parts_of(case.strategy) for case in group.cases} - {first.batch}
    others = [each for each in among if _but(each.cases[0]) == _but(first) and each.cases[0].batch in batches]
    return [
        replace(contender_of(each.case, each.title), level=SOME_LEVEL)
        for other in others
        for each in other.variants
        if name_of(each.case.strategy) == SINGLE
    ]


def _but(case: Case) -> tuple[object, ...]:
    """Return the settings that are equal in two groups that differ only in the batch."""
    sizes = {name: value for name, value in case.sizes.items() if name != "batch"}
    return case.workload, case.preset, sizes, case.data, case.task, case.settings.device, case.settings.precision


def _passes(group: Group, table: PublishedTable) -> list[MeasuredContender]:
    """Return a variant for every set of passes that documents mention: counting a graph tries them all."""
    sides = [side for each in table.statements for side in (each.first, each.second) if side]
    choices = dict.fromkeys(side.settings[PASSES] for side in sides if PASSES in side.settings)
    contenders = [contender for contender in _contenders(group) if PASSES in contender.settings][:1]
    return [
        replace(contender, key=f"{contender.key}/{choice}", settings={**contender.settings, PASSES: choice})
        for contender in contenders
        for choice in choices
    ]


def _seeds(group: Group, among: Sequence[Group]) -> set[int]:
    """Return the seeds of the groups that differ from one group only in their seed."""
    wanted = [replace(case, seed=0) for case in group.cases]
    return {other.cases[0].seed for other in among if [replace(case, seed=0) for case in other.cases] == wanted}
