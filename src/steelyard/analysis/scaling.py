"""Strategies compared with a single process: speed-up, efficiency, exchange and idle time."""

from __future__ import annotations

import math
import statistics as plain
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from steelyard.results import ranks, utilisation
from steelyard.results.quantities import STEP_TIME
from steelyard.results.trials import processes
from steelyard.statistics.answer import is_wide
from steelyard.statistics.intervals import Ratio, ratio_interval
from steelyard.statistics.unpaired import welch
from steelyard_worker import strategy_kinds
from steelyard_worker.case import differences
from steelyard_worker.strategy import MICRO_BATCHES, PINNED, SINGLE, name_of, parts_of
from steelyard_worker.strategy_kinds import ALONE

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from steelyard.analysis.model import Comparison, Contender
    from steelyard.results.trials import Trial
    from steelyard_worker.strategy import Spread

SAME, OTHER = "the same", "another algorithm"
# Fields of a case that change with the batch.
OF_THE_BATCH = frozenset({"sizes.batch", "specification", "inputs"})


@dataclass(frozen=True)
class Share:
    """A share with the ends of its interval; `enough`: whether there were enough rounds for a useful interval."""

    value: float
    low: float
    high: float
    enough: bool


@dataclass(frozen=True)
class Scaled:
    """One contender. `computes`: the same as a single process, something else, or why its figures are not used.

    `single`: the single process that `speed_up` refers to. `without`: the ranks without exchange that `exchange` refers
    to. `idle` and `ideal_idle`: of a pipeline. `memory`: the peak of the rank that needs most over that of `single`, where ranks
    are processes that divide what one process holds. Memory in bytes and busy cores are of each rank, by rank, means over trials.
    """

    contender: Contender
    kind: str
    parts: int
    processes: int
    shares_batch: bool
    computes: str
    single: Contender | None = None
    speed_up: Ratio | None = None
    efficiency: Share | None = None
    without: Contender | None = None
    exchange: Share | None = None
    idle: Share | None = None
    micro_batches: int = 0
    ideal_idle: float | None = None
    memory: Ratio | None = None
    memory_bytes: tuple[float, ...] = ()
    busy_cores: tuple[float, ...] = ()


@dataclass(frozen=True)
class Weak:
    """A contender with the single process of another group whose batch is that of one part."""

    contender: Contender
    parts: int
    batch: int
    single: Contender
    group: str
    single_batch: int
    overhead: Share


def scaled(comparison: Comparison) -> list[Scaled]:
    """Return the contenders with a strategy, and their single processes; empty if no training is spread.

    They are sorted by framework and mode, the single process first. The framework of the fastest comes first.
    Empty also if the ranked quantity has one value per process, because this is about the time of steps.
    """
    spread = [each for each in comparison.contenders if parts_of(each.case.strategy) > 1 and is_shown(comparison, each)]
    found = [_scaled(comparison, each) for each in spread]
    singles = {row.single.case.id: row.single for row in found if row.single}
    rows = [_scaled(comparison, each, is_single=True) for each in singles.values()] + found
    places = list(dict.fromkeys(map(_framework_and_mode, comparison.contenders)))
    return sorted(rows, key=lambda row: places.index(_framework_and_mode(row.contender)))


def weak(comparison: Comparison, among: Sequence[Comparison]) -> list[Weak]:
    """Return the overhead of every contender whose batch per part is the batch of another group's single process.

    Both ran in different rounds, so the interval is not paired.
    """
    found = []
    for row in scaled(comparison):
        for other in among if row.parts > 1 and row.computes in (SAME, OTHER) else ():
            if (
                other is comparison
                or other.batch * row.parts != comparison.batch
                or other.primary != comparison.primary
            ):
                continue
            single = _single(other, row.contender, OF_THE_BATCH)
            overhead = single and _overhead(_values(comparison, single), _values(comparison, row.contender))
            if single and overhead:
                found.append(
                    Weak(row.contender, row.parts, comparison.batch, single, other.group, other.batch, overhead)
                )
    return found


def _framework_and_mode(contender: Contender) -> tuple[str, str]:
    return contender.case.framework, contender.case.settings.mode


def is_shown(comparison: Comparison, contender: Contender) -> bool:
    """Return whether a contender has step times on the input that verdicts use."""
    return comparison.primary in contender.speeds


def _scaled(comparison: Comparison, contender: Contender, is_single: bool = False) -> Scaled:
    spread, parts = spread_of(contender), parts_of(contender.case.strategy)
    kind, computes = spread.kind if spread else SINGLE, computation(contender)
    does = strategy_kinds.of(kind)
    facts: dict[str, Any] = {
        "processes": processes(contender.trials[0].job),
        "shares_batch": not spread or (spread.shares == "batch" and not does.cuts),
        "memory_bytes": of_each_rank(contender, ranks.peak_of_each),
        "busy_cores": of_each_rank(contender, lambda trial: _busy(trial, comparison.primary)),
    }
    if is_single or computes not in (SAME, OTHER):
        return Scaled(contender, kind, parts, computes=computes, **facts)
    if does.in_micro_batches and (count := _micro_batches(contender)):
        facts |= {"micro_batches": count, "ideal_idle": (parts - 1) / (count + parts - 1)}
    if single := _single(comparison, contender):
        facts["single"] = single
        if speed_up := ratio_of(comparison, single, contender):
            efficiency = _share(speed_up, 0, 1 / parts)
            facts |= {"speed_up": speed_up, "efficiency": efficiency}
            facts["idle"] = _share(speed_up, 1, -1 / parts) if does.in_micro_batches else None
        if does.divides and facts["processes"] > 1:
            facts["memory"] = ratio_interval(_of_hungriest_rank(contender), _of_hungriest_rank(single))
    if kind != ALONE and facts["shares_batch"] and (without := _without_exchange(comparison, contender)):
        ratio = _paired(comparison, without, contender)
        facts |= {"without": without, "exchange": _share(ratio, 1, -1) if ratio else None}
    return Scaled(contender, kind, parts, computes=computes, **facts)


def spread_of(contender: Contender) -> Spread | None:
    """Return the framework's declaration of a contender's strategy, as recorded by its trials; None for a single process."""
    return next((trial.job.spread for trial in contender.trials if trial.job.spread), None)


def computation(contender: Contender) -> str:
    """Return whether a contender computes the same as a single process or something else, or why its figures are not used."""
    spread = spread_of(contender)
    if contender.failure:
        return "failed"
    if contender.above_peak:
        return "invalid"
    if contender.proof.on_purpose:
        return contender.proof.on_purpose
    if spread and spread.does.otherwise:
        return OTHER
    return SAME if contender.proof.state == "certified" else "not certified"


def _single(comparison: Comparison, contender: Contender, free: frozenset[str] = frozenset()) -> Contender | None:
    """Return the single process that otherwise equals a contender, preferably the one on as many cores as threads."""
    found = [
        each
        for each in comparison.contenders
        if name_of(each.case.strategy) == SINGLE
        and is_shown(comparison, each)
        and computation(each) == SAME
        and alike(each, contender, free)
    ]
    return min(found, key=lambda each: each.case.strategy != PINNED, default=None)


def _without_exchange(comparison: Comparison, contender: Contender) -> Contender | None:
    wanted = f"{ALONE}:{parts_of(contender.case.strategy)}"
    found = (
        each
        for each in comparison.contenders
        if each.case.strategy == wanted
        and is_shown(comparison, each)
        and computation(each) == OTHER
        and alike(each, contender)
    )
    return next(found, None)


def alike(other: Contender, contender: Contender, free: frozenset[str] = frozenset()) -> bool:
    """Return whether two cases differ only in their strategies, the settings that these imply, and the `free` fields."""
    declared = [spread for each in (other, contender) if (spread := spread_of(each))]
    knobs = {MICRO_BATCHES, *(knob for spread in declared for knob in spread.knobs)}
    # The same framework with one more package.
    environment = {"version"} if any(spread.environment for spread in declared) else set()
    return differences(other.case, contender.case).keys() <= {
        "strategy",
        *environment,
        *(f"settings.knobs.{each}" for each in knobs),
        *free,
    }


def _micro_batches(contender: Contender) -> int:
    found = contender.case.settings.knobs.get(MICRO_BATCHES)
    return found if isinstance(found, int) and found > 0 else 0


def _values(comparison: Comparison, contender: Contender) -> dict[int, float]:
    return STEP_TIME.of_rounds({trial.job.round: trial for trial in contender.trials}, comparison.primary)


def _of_hungriest_rank(contender: Contender) -> dict[int, float]:
    """Return {round: peak memory in bytes of the rank that needs most}, without the rounds of which it is not known."""
    peaks = {trial.job.round: ranks.peak_of_each(trial) for trial in contender.trials}
    return {number: max(found) for number, found in peaks.items() if found}


def ratio_of(comparison: Comparison, a: Contender, b: Contender) -> Ratio | None:
    """Return the ratio of step times A / B: from the verdict on the two, or paired by round if one is in no verdict."""
    verdict = comparison.rankings[comparison.primary].between(a.case.id, b.case.id)
    return Ratio(verdict.ratio, verdict.low, verdict.high, verdict.rounds) if verdict else _paired(comparison, a, b)


def _paired(comparison: Comparison, a: Contender, b: Contender) -> Ratio | None:
    """Return the ratio with its 95 % interval; without ends if the two share one round, None if they share none."""
    above, below = _values(comparison, a), _values(comparison, b)
    common = sorted(above.keys() & below.keys())
    if len(common) == 1:
        return Ratio(above[common[0]] / below[common[0]], 0.0, math.inf, 1)
    return ratio_interval(above, below)


def _share(ratio: Ratio, start: float, factor: float) -> Share:
    """Return start + factor * ratio, with its ends in order."""
    low, high = sorted((start + factor * ratio.low, start + factor * ratio.high))
    return Share(start + factor * ratio.value, low, high, not is_wide(ratio.low, ratio.high))


def as_share(ratio: Ratio) -> Share:
    """Return a ratio as a share."""
    return _share(ratio, 0, 1)


def _overhead(single: dict[int, float], spread: dict[int, float]) -> Share | None:
    """Return 1 - (steps per second with several parts) / (steps per second of the single process)."""
    if not (single and spread):
        return None
    if found := welch(list(single.values()), list(spread.values())):
        return _share(found.ratio(0.05), 1, -1)
    ratio = plain.geometric_mean(single.values()) / plain.geometric_mean(spread.values())
    return _share(Ratio(ratio, 0.0, math.inf, 1), 1, -1)


def _busy(trial: Trial, source: str) -> list[float] | None:
    return ranks.of_each(trial, lambda one: utilisation.busy_cores_of_rank(one, source))


def of_each_rank(contender: Contender, read: Callable[[Trial], Sequence[float] | None]) -> tuple[float, ...]:
    """Return a figure of each rank, the mean over the trials that have it; empty where none has."""
    known = [values for trial in contender.trials if (values := read(trial))]
    return tuple(plain.mean(of_rank) for of_rank in zip(*known, strict=False))
