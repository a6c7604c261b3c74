"""Where the level of a series of runs has changed: candidates from ruptures, confirmed by intervals and by shuffling.

A run is the replicate here, not a process: nights differ by more than the processes of one night.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from math import ceil, exp, inf, log, sqrt
from typing import TYPE_CHECKING

import numpy as np

from steelyard.statistics.intervals import Ratio, student_quantile

if TYPE_CHECKING:
    from collections.abc import Sequence

    from steelyard.statistics.pair_evidence import Floats

LEAST_LEVEL = 2
"""Runs that a level in the past has at least: a single slow night is no change. The newest run may be a level of its own."""
PENALTY = 2.0
"""Cost of a further change in units of variance times ln(runs): the Bayesian information criterion for a level and a place."""
RESOLUTION = 1e-4
"""Smallest scatter of runs that is believed: a few equal values do not show theirs."""
QUARTILES = 1.349
"""Distance of the quartiles of a normal distribution in standard deviations."""
SHUFFLES = 400
"""Shuffled series at most, where there are enough to tell the error."""
TIE = 1 + 1e-9


@dataclass(frozen=True)
class Shift:
    """The level changed before the run at `place`. `ratio`: the level from there on over the level before."""

    place: int
    ratio: Ratio


@dataclass(frozen=True)
class Course:
    """A series with its changes of level, oldest first, and the newest level over the best one before it, if it ever changed.

    The chance that a series without a change has one, and that an interval misses its truth, is the error that was asked for.
    """

    shifts: tuple[Shift, ...] = ()
    against_best: Ratio | None = None


def course(series: Sequence[float], error: float) -> Course:
    """Return the changes of level in a series of logarithms of times, in the order of the runs."""
    values = np.asarray(series, dtype=np.float64)
    kept: list[int] = []
    for place, strength in sorted(_confirmed(values, error), key=lambda each: -each[1]):
        if _is_by_chance(values, kept, strength, error):
            break
        kept = sorted([*kept, place])
    if not kept:
        return Course()
    levels = np.split(values, kept)
    scatter, share = _scatter(levels), error / (len(values) - 1)
    found = [_ratio(*pair, *scatter, share) for pair in pairwise(levels)]
    *before, last = levels
    # The best of several levels was picked by the same data, so they share the error.
    best = _ratio(min(before, key=lambda each: float(each.mean())), last, *scatter, error / len(before))
    return Course(tuple(map(Shift, kept, found)), best)


def _confirmed(values: Floats, error: float) -> list[tuple[int, float]]:
    """Return the candidates whose intervals exclude equality, with their strengths: difference over half the interval.

    The error is shared by all places where a change could be. The weakest candidate goes first, as it blurs its neighbours.
    """
    found = _candidates(values)
    while found:
        levels = np.split(values, found)
        scatter, share = _scatter(levels), error / (len(values) - 1)
        strengths = [
            abs(log(each.value)) / _half(each) for each in (_ratio(*pair, *scatter, share) for pair in pairwise(levels))
        ]
        weakest = strengths.index(min(strengths))
        if strengths[weakest] > 1:
            return list(zip(found, strengths, strict=True))
        del found[weakest]
    return []


def _candidates(values: Floats) -> list[int]:
    """Return the places of the changes that fit best, and that of the newest run."""
    count = len(values)
    if count < 2 * LEAST_LEVEL:
        return [count - 1] if count > 2 else []
    import ruptures  # here, as it takes a third of a second

    low, high = np.quantile(np.diff(values), (0.25, 0.75))
    scatter = max(float(high - low) / QUARTILES / sqrt(2), RESOLUTION)
    search = ruptures.KernelCPD(kernel="linear", min_size=LEAST_LEVEL).fit((values - values.mean())[:, None])
    *found, _ = search.predict(pen=PENALTY * scatter**2 * log(count))
    return sorted({*map(int, found), count - 1})


def _is_by_chance(values: Floats, kept: list[int], strength: float, error: float) -> bool:
    """Report whether the runs between the kept changes, in a random order, too often have a stronger change.

    Intervals alone believe in normal noise, where a few very slow nights pass for a level of their own.
    """
    rest = np.concatenate([level - level.mean() for level in np.split(values, kept)])
    random = np.random.default_rng(0)  # the same history has the same changes whenever it is shown
    count = min(SHUFFLES, ceil(10 / error))
    allowed = int(error * (count + 1)) - 1  # the series itself is one of its orders
    for _ in range(count):
        found = _confirmed(random.permutation(rest), error)
        allowed -= any(each > strength * TIE for _, each in found)
        if allowed < 0:
            return True
    return False


def _scatter(levels: Sequence[Floats]) -> tuple[float, int]:
    """Return the standard deviation of runs around their levels, and its degrees of freedom."""
    freedom = sum(map(len, levels)) - len(levels)
    squares = sum(float(((each - each.mean()) ** 2).sum()) for each in levels)
    return max(sqrt(squares / freedom), RESOLUTION) if freedom else inf, freedom


def _ratio(before: Floats, after: Floats, scatter: float, freedom: int, error: float) -> Ratio:
    """Return one level over another with its interval; all levels have the same scatter."""
    mean = float(after.mean() - before.mean())
    if not freedom:
        return Ratio(exp(mean), 0.0, inf, 0)
    half = student_quantile(1 - error / 2, freedom) * scatter * sqrt(1 / len(before) + 1 / len(after))
    return Ratio(exp(mean), exp(mean - half), exp(mean + half), min(len(before), len(after)))


def _half(found: Ratio) -> float:
    return log(found.high / found.value) if found.low > 0 else inf
