"""Published and measured ratios: which measured pairs a statement refers to, and whether both agree. Pure functions."""

from __future__ import annotations

import itertools
from collections import Counter
from dataclasses import dataclass, field, replace
from statistics import fmean
from typing import TYPE_CHECKING, Any, get_args

from steelyard.statistics.claims import MAXIMUM, MEAN, Claim, Judgement, judge, judge_level, of_claim
from steelyard.statistics.conditions import NOT_THE_DOCUMENTS, Conditions, differences
from steelyard.statistics.intervals import Ratio
from steelyard.statistics.sentences import listed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from steelyard.published.gathering import PublishedTable
    from steelyard.published.statements import Statement
    from steelyard.published.study_tables import Side
    from steelyard.statistics.intervals import Level

OVER_BATCHES: dict[str, Callable[[list[float]], float]] = {MEAN: fmean, MAXIMUM: max}
JUDGEMENTS: tuple[Judgement, ...] = get_args(Judgement)


@dataclass(frozen=True)
class MeasuredContender:
    """One measured variant. `settings`: its knobs as text, "workers", "strategy", "devices" (the parts of the strategy) and
    "link" (what is between its hosts; empty on one).

    `value`: its mean as text; empty without any. `level`: the mean as a number with its interval, of a quantity of which
    documents give values. `reason` says why it is in no verdict; empty if it is in one.
    """

    key: str
    title: str
    framework: str
    mode: str
    settings: Mapping[str, str]
    value: str = ""
    reason: str = ""
    level: Level | None = None


@dataclass(frozen=True)
class MeasuredGroup:
    """The measurements of one group in one quantity. `cell`: the published workload:preset that the group is or represents.

    `ratio` returns the ratio of two variants, above 1 where the first is better, None without a verdict. `missing`: framework ->
    why it was not measured. `no_ratio`: why two variants have no ratio if neither has a reason. `conditions`: the settings that
    it was measured with, `replaced`: the preset's values of the sizes that were changed. `scores`: whether the scores of
    trainings are compared, and not their times.
    """

    name: str
    cell: str
    task: str
    batch: int
    optimizer: str
    contenders: Sequence[MeasuredContender]
    ratio: Callable[[str, str], Ratio | None]
    missing: Mapping[str, str]
    no_ratio: str = "They have fewer than two rounds in common."
    conditions: Conditions = field(default_factory=Conditions)
    replaced: Mapping[str, Any] = field(default_factory=dict)
    scores: bool = False


@dataclass(frozen=True)
class Row:
    """One statement with one measured pair. `measured` and `judgement` are empty where `reason` says why.

    `sides`: the names of both variants, or of the single one; `values`: their measured means as text. `published` and
    `here`: the settings of the document and of this run. `differences`: the settings that differ, which rules out a judgement.
    """

    statement: Statement
    sides: tuple[str, ...]
    group: str = ""
    batch: int = 0
    values: tuple[str, ...] = ()
    measured: Ratio | Level | None = None
    judgement: Judgement | None = None
    reason: str = ""
    published: Conditions | None = None
    here: Conditions | None = None
    differences: tuple[str, ...] = ()

    @property
    def said(self) -> Claim:
        """What the document says."""
        return self.statement.said


def beside(
    table: PublishedTable, groups: Iterable[MeasuredGroup], absent: Mapping[str, str] | None = None
) -> tuple[Row, ...]:
    """Return a row for every statement and every measured pair that it refers to; without a pair, one row with the reason.

    `absent`: workload:preset -> why nothing of it was measured.
    """
    measured = [group for group in groups if group.task == table.task]
    return tuple(row for statement in table.statements for row in _rows(statement, measured, absent or {}))


def count(rows: Iterable[Row]) -> dict[Judgement | None, int]:
    """Return {judgement: number of claims} in the usual order; the key None counts claims whose rows contradict each other."""
    found = Counter(of_claim([row.judgement for row in each if row.judgement]) for each in claims(rows).values())
    return {judgement: found[judgement] for judgement in (*JUDGEMENTS, None)}


def claims(rows: Iterable[Row]) -> dict[str, list[Row]]:
    """Return the judged rows, grouped by the document's claim. In older records every row is a claim of its own."""
    found: dict[str, list[Row]] = {}
    for place, row in enumerate(rows):
        if row.judgement:
            found.setdefault(row.statement.claim or f"row {place}", []).append(row)
    return found


def under(statement: Statement, group: MeasuredGroup) -> Conditions | None:
    """Return the document's settings for the network of a group; None where the record lacks them.

    If the document did not measure such a network, the settings that all of its networks share.
    """
    fitting = (each for each in statement.conditions if not each.cells or group.cell in each.cells)
    return next(fitting, statement.conditions[0] if statement.conditions else None)


def _with_settings(row: Row, group: MeasuredGroup, *contenders: MeasuredContender) -> Row:
    """Return a row of these variants with the settings of document and run, and without a judgement where they differ."""
    said, statement = under(row.statement, group), row.statement
    if said and said.cells and group.cell not in said.cells:
        found: tuple[str, ...] = (NOT_THE_DOCUMENTS,)
    else:
        found = differences(said, group.conditions, parts_of(*contenders), dict(group.replaced), group.scores)
    unlike = [each.words for each in statement.unlike if any(means(each, contender) for contender in contenders)]
    found = (*found, *statement.differs, *unlike)
    return replace(
        row, published=said, here=group.conditions, differences=found, judgement=None if found else row.judgement
    )


def parts_of(*contenders: MeasuredContender) -> int:
    """Return the largest number of devices or ranks among some variants."""
    return max(int(contender.settings.get("devices", "1")) for contender in contenders)


def _rows(statement: Statement, groups: list[MeasuredGroup], absent: Mapping[str, str]) -> Iterator[Row]:
    named = [side for side in (statement.first, statement.second) if side]
    words = tuple(side.words for side in named)
    meant = [
        group
        for group in groups
        if (not statement.cell or group.cell == statement.cell)
        and (not statement.optimizer or group.optimizer == statement.optimizer)
    ]
    if not meant:
        reason = absent.get(statement.cell) or f"{statement.cell or 'Such a group'} is not in this run."
        yield Row(statement, words, reason=reason)
        return
    same_batch = [group for group in meant if statement.batch and group.batch == statement.batch]
    found = [row for group in same_batch or meant for row in _found(statement, group)]
    if found and statement.statistic in OVER_BATCHES:
        yield from _over_batches(statement, found)
    elif found:
        yield from found
    elif reasons := [_missing(contender, group) for group in meant for contender in named]:
        yield Row(statement, words, reason=next(filter(None, reasons), "The two are not in this run together."))


def _over_batches(statement: Statement, rows: list[Row]) -> Iterator[Row]:
    """Yield one row for every pair of sides: the document's statistic (mean or maximum) over their ratios at all batches.

    The ends of the interval are the mean or maximum of the ends at all batches. It misses the truth no more often than any of the
    intervals does.
    """
    words, combine = statement.statistic, OVER_BATCHES[statement.statistic]
    for sides in dict.fromkeys(row.sides for row in rows):
        of_sides = [row for row in rows if row.sides == sides]
        ratios = [row.measured for row in of_sides if isinstance(row.measured, Ratio)]
        batches = listed([str(row.batch) for row in of_sides])
        where = f"{statement.cell or of_sides[0].group}, {words} ({batches})"
        if len(ratios) < len(of_sides) or len(of_sides) < 2:
            reasons = [row.reason for row in of_sides if row.reason]
            reason = reasons[0] if reasons else f"The document has the {words}, and this run has one batch."
            yield Row(statement, sides, where, reason=reason)
            continue
        value, low, high = (combine([getattr(each, end) for each in ratios]) for end in ("value", "low", "high"))
        measured = Ratio(value, low, high, min(each.rounds for each in ratios))
        found = tuple(
            dict.fromkeys(each for row in of_sides for each in (*row.differences, *_batches_missing(of_sides)))
        )
        judgement = None if found else judge(statement.said, measured)
        yield replace(
            of_sides[0], group=where, batch=0, values=(), measured=measured, judgement=judgement, differences=found
        )


def _batches_missing(rows: list[Row]) -> list[str]:
    """Return which batches of the document's mean or maximum were not measured; empty if all were."""
    wanted = {batch for row in rows if row.published for batch in row.published.batches}
    missing = sorted(wanted - {row.batch for row in rows})
    return [f"without batch {listed([str(each) for each in missing])}"] if missing else []


def _found(statement: Statement, group: MeasuredGroup) -> Iterator[Row]:
    """Yield a row for every pair of variants that a statement refers to, or for every variant if it has only one side."""
    firsts = [contender for contender in group.contenders if means(statement.first, contender)]
    if statement.second:
        seconds = [contender for contender in group.contenders if means(statement.second, contender)]
        yield from _pairs(statement, statement.second, group, itertools.product(firsts, seconds))
        return
    for contender in firsts:
        judgement = judge_level(statement.said, contender.level) if contender.level else None
        row = Row(
            statement,
            (contender.title,),
            group.name,
            group.batch,
            (contender.value,),
            contender.level,
            judgement,
            contender.reason,
        )
        yield _with_settings(row, group, contender)


def _pairs(
    statement: Statement,
    second_side: Side,
    group: MeasuredGroup,
    pairs: Iterable[tuple[MeasuredContender, MeasuredContender]],
) -> Iterator[Row]:
    for first, second in pairs:
        if first is second or not _alike_otherwise(statement, second_side, first, second):
            continue
        sides, values = (first.title, second.title), (first.value, second.value)
        measured = group.ratio(first.key, second.key)
        reason = "" if measured else first.reason or second.reason or group.no_ratio
        judgement = judge(statement.said, measured) if measured else None
        row = Row(statement, sides, group.name, group.batch, values, measured, judgement, reason)
        yield _with_settings(row, group, first, second)


def means(side: Side, contender: MeasuredContender) -> bool:
    """Return whether a side of a published comparison refers to a measured variant."""
    return (
        side.framework in ("", contender.framework)
        and side.mode in ("", contender.mode)
        and all(contender.settings.get(name, "").lower() == text.lower() for name, text in side.settings.items())
    )


def _alike_otherwise(
    statement: Statement, second_side: Side, first: MeasuredContender, second: MeasuredContender
) -> bool:
    """Return whether two variants of one framework are equal in every setting that the statement does not name.

    Variants of different frameworks may differ in modes and knobs, but not in loader workers, strategy, or the link between the
    hosts.
    """
    named = statement.first.settings.keys() | second_side.settings.keys()
    if not _on_as_many_devices(first, second):
        return False
    if first.framework != second.framework:
        names = {"workers", "strategy", "link"} - named
    elif not (statement.first.mode or second_side.mode) and first.mode != second.mode:
        return False
    else:
        names = (first.settings.keys() | second.settings.keys()) - named - {"devices"}
    return all(first.settings.get(name) == second.settings.get(name) for name in names)


def _on_as_many_devices(first: MeasuredContender, second: MeasuredContender) -> bool:
    """Return whether two variants use the same number of devices, or one of them is a single process."""
    numbers = {contender.settings.get("devices", "1") for contender in (first, second)}
    return len(numbers) == 1 or "1" in numbers


def _missing(side: Side, group: MeasuredGroup) -> str:
    """Return why a group has no variant for a side; empty if it has one."""
    if any(means(side, contender) for contender in group.contenders):
        return ""
    if "strategy" in side.settings and any(contender.framework == side.framework for contender in group.contenders):
        return f"'{side.words}' is not in this run."  # what is missing is the strategy, not the framework
    return group.missing.get(side.framework) or f"'{side.words}' is not in this run."
