"""How the level of a series of runs has changed: steps, found by ruptures and confirmed by intervals, or a slow creep.

A run is the replicate here, not a process: nights differ by more than the processes of one night.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate, pairwise
from math import exp, inf, log, sqrt
from typing import TYPE_CHECKING

import numpy as np

from steelyard.statistics import creeps
from steelyard.statistics.intervals import Ratio, student_quantile

if TYPE_CHECKING:
    from collections.abc import Sequence

    from steelyard.statistics.creeps import Creep
    from steelyard.statistics.pair_evidence import Floats

LOOKS = 365
"""Looks, such as nights of a year, that share the error: the chance that any of them reports a change where there is none."""
LEAST_LEVEL = 4
"""Runs that a level has at least: one to three slow nights are no change, the newest ones neither."""
STABLE = 8
"""Runs of a level that others are compared with: more than one lucky week of nights."""
MEMORY = 90
"""A level that ended more runs ago than this is compared with nothing any more."""
PENALTY = 2.0
"""Cost of a further change in units of variance times ln(runs): the Bayesian information criterion for a level and a place."""
RESOLUTION = 1e-4
"""The least scatter of runs that is assumed: a few equal values do not show their true scatter."""
QUARTILES = 1.349
"""Distance of the quartiles of a normal distribution in standard deviations."""
OF_MOST_RUNS = 0.5
"""Each run of a short level, and the median of a long one, is at least this part of the difference of the means away from the
other level: a very slow night moves a mean alone, and times scatter more upwards than downwards."""


@dataclass(frozen=True)
class Shift:
    """The level changed before the run at `place`. `ratio`: the level from there on over the level before."""

    place: int
    ratio: Ratio


@dataclass(frozen=True)
class Against:
    """The newest level over the one that it is compared with: that of the runs from `start` to before `end`."""

    start: int
    end: int
    ratio: Ratio


@dataclass(frozen=True)
class Course:
    """A series with its changes of level, oldest first, and the creep that goes on at its end, if there is one.

    `reference`: the newest level over the last stable one before it; None while it creeps, or where there is no such level.
    """

    shifts: tuple[Shift, ...] = ()
    reference: Against | None = None
    creep: Creep | None = None


def course(
    series: Sequence[float] | Floats,
    error: float,
    days: Sequence[float] = (),
    accepted: int | None = None,
    looks: int = LOOKS,
) -> Course:
    """Return how the level changed in a series of logarithms of times, in the order of the runs.

    `error`: the chance that a series without a change has one, in any of `looks` looks at it while it grew. `days`: when the runs
    were measured, in days from any time on; empty: one a day. `accepted`: a run whose level is normal, so that no level before
    it is compared with.
    """
    values = np.asarray(series, dtype=np.float64)
    when = np.asarray(days, dtype=np.float64) if len(days) else np.arange(len(values), dtype=np.float64)
    share = error / looks / 2  # half of it for steps, half for creeps
    places = _confirmed(values, share)
    kept, creep = _creep(values, when, places, share, accepted or 0)
    levels = np.split(values, kept)
    scatter, part = _scatter(np.split(values, places)), share / max(1, len(values) - 1)
    found = tuple(
        Shift(place, _ratio(*pair, *scatter, part)) for place, pair in zip(kept, pairwise(levels), strict=True)
    )
    return Course(found, None if creep else _reference(levels, scatter, share, accepted), creep)


def _confirmed(values: Floats, error: float) -> list[int]:
    """Return the candidates whose intervals exclude equality.

    The error is shared by all places where a change could be. The weakest candidate goes first, as it blurs its neighbours.
    """
    found = _candidates(values)
    while found:
        levels = np.split(values, found)
        scatter, share = _scatter(levels), error / (len(values) - 1)
        strengths = [_strength(*pair, scatter, share) for pair in pairwise(levels)]
        weakest = strengths.index(min(strengths))
        if strengths[weakest] > 1:
            break
        del found[weakest]
    return found


def _candidates(values: Floats) -> list[int]:
    """Return the places of the changes that fit best."""
    if len(values) < 2 * LEAST_LEVEL:
        return []
    import ruptures  # here, as it takes a third of a second

    low, high = np.quantile(np.diff(values), (0.25, 0.75))
    scatter = max(float(high - low) / QUARTILES / sqrt(2), RESOLUTION)
    search = ruptures.KernelCPD(kernel="linear", min_size=LEAST_LEVEL).fit((values - values.mean())[:, None])
    *found, _ = search.predict(pen=PENALTY * scatter**2 * log(len(values)))
    return list(map(int, found))


def _strength(before: Floats, after: Floats, scatter: tuple[float, int], error: float) -> float:
    """Return the difference of two levels over half its interval; 0 where a few runs alone make the difference."""
    mean = float(after.mean() - before.mean())
    least = min(_least(after - before.mean(), mean), _least(after.mean() - before, mean))
    return abs(mean) / _half(_ratio(before, after, *scatter, error)) if least >= OF_MOST_RUNS * abs(mean) else 0.0


def _least(differences: Floats, mean: float) -> float:
    """Return how far a level is from another one on the side of the mean: the nearest of a few runs, the median of many."""
    towards = differences if mean > 0 else -differences
    return float(towards.min() if len(towards) < STABLE else np.median(towards))


def _creep(
    values: Floats, days: Floats, places: list[int], error: float, accepted: int
) -> tuple[list[int], Creep | None]:
    """Return the changes that are steps, and the creep after the last of them, if that explains more than steps alone.

    Models are compared by the Bayesian information criterion. A creep that is taken for steps looks like a staircase.
    """
    best, kept, creep = _criterion(_left(np.split(values, places)), 2 * len(places) + 1), places, None
    for number, start in enumerate((0, *places)):
        fitted = creeps.fit(values[start:], days[start:], error, max(0, accepted - start))
        if fitted and fitted.is_certain:
            before = _left(np.split(values[:start], places[: max(0, number - 1)])) if start else values[:0]
            found = _criterion(np.concatenate([before, fitted.rest]), 2 * number + 3)
            if found < best:
                own = fitted.creep
                best, kept = found, places[:number]
                creep = creeps.Creep(start + own.place, own.weekly, own.total)
    return kept, creep


def _criterion(rest: Floats, parameters: int) -> float:
    """Return the Bayesian information criterion of a model with these residuals; less is better."""
    count = max(1, len(rest))
    return count * log(max(float((rest**2).mean()), RESOLUTION**2) if len(rest) else 1.0) + parameters * log(count)


def _reference(levels: list[Floats], scatter: tuple[float, int], error: float, accepted: int | None) -> Against | None:
    """Return the newest level over the last stable one before it that was no slow-down of the one before; None without any."""
    ends = list(accumulate(map(len, levels)))
    starts = [end - len(level) for level, end in zip(levels, ends, strict=True)]
    known = [
        number
        for number, (start, end) in enumerate(zip(starts[:-1], ends, strict=False))
        if _counts(start, end, ends[-1], accepted)
    ]
    if not known:
        return None
    share = error / len(known)
    chosen = known[0]
    for number in known[1:]:
        if _ratio(levels[chosen], levels[number], *scatter, share).low <= 1:
            chosen = number
    return Against(starts[chosen], ends[chosen], _ratio(levels[chosen], levels[-1], *scatter, share))


def _counts(start: int, end: int, runs: int, accepted: int | None) -> bool:
    """Report whether others are compared with a level: a stable one that is not forgotten, or the accepted one."""
    if accepted is not None and accepted >= start:
        return accepted < end
    return end - start >= STABLE and runs - end <= MEMORY


def _left(levels: Sequence[Floats]) -> Floats:
    """Return the residuals of a series around its levels."""
    return (
        np.concatenate([each - each.mean() for each in levels if len(each)]) if sum(map(len, levels)) else np.zeros(0)
    )


def _scatter(levels: Sequence[Floats]) -> tuple[float, int]:
    """Return the standard deviation of runs around their levels, and its degrees of freedom."""
    rest = _left(levels)
    freedom = len(rest) - len(levels)
    return max(sqrt(float((rest**2).sum()) / freedom), RESOLUTION) if freedom > 0 else inf, freedom


def _ratio(before: Floats, after: Floats, scatter: float, freedom: int, error: float) -> Ratio:
    """Return one level over another with its interval; all levels have the same scatter."""
    mean = float(after.mean() - before.mean())
    half = student_quantile(1 - error / 2, freedom) * scatter * sqrt(1 / len(before) + 1 / len(after))
    return Ratio(exp(mean), exp(mean - half), exp(mean + half), min(len(before), len(after)))


def _half(found: Ratio) -> float:
    return log(found.high / found.value)
