"""A slow creep in a series of runs: from some run on, each week takes longer or shorter than the last by the same factor."""

from __future__ import annotations

from dataclasses import dataclass
from math import exp, sqrt
from typing import TYPE_CHECKING

import numpy as np

from steelyard.statistics.intervals import Ratio, student_quantile

if TYPE_CHECKING:
    from steelyard.statistics.pair_evidence import Floats, Integers

LEAST_RUNS = 20
"""Runs from the beginning of a creep on, at least."""
LEAST_DAYS = 42.0
"""Days from its beginning to the newest run, at least: within fewer weeks, a step cannot be told from a creep."""
MOST_STARTS = 60
"""Places at which a creep is looked for; of a long series, evenly spread ones."""
WEEK = 7.0


@dataclass(frozen=True)
class Creep:
    """A creep that begins at the run at `place` and goes on to the newest run.

    `weekly`: the time after a week over that before. `total`: the time at the newest run over that at `place`.
    """

    place: int
    weekly: Ratio
    total: Ratio


@dataclass(frozen=True)
class Fit:
    """The creep that fits a series best, and the residuals, shape (runs,). `is_certain`: its interval excludes a slope of 0."""

    creep: Creep
    rest: Floats
    is_certain: bool


def fit(values: Floats, days: Floats, error: float, accepted: int = 0) -> Fit | None:
    """Return the creep that fits a series best: a level, and from one run on a straight line that continues it.

    `values`: logarithms of times; `days`: when they were measured; both shape (runs,), in the order of time. The error is shared
    by all places where it could begin. `accepted`: the total counts from this run on, if the creep began before it. None:
    there are too few runs, or days, for a creep.
    """
    places = _starts(days)
    if not len(places):
        return None
    after = np.maximum(0.0, days - days[places][:, None])
    across, up = after - after.mean(axis=1, keepdims=True), values - values.mean()
    squares = (across**2).sum(axis=1)
    slopes = across @ up / squares
    best = int(np.argmax(slopes**2 * squares))  # the part that least squares explain
    place, slope, spread, rest = (
        int(places[best]),
        float(slopes[best]),
        sqrt(squares[best]),
        up - slopes[best] * across[best],
    )
    freedom = len(values) - 3  # the level, the slope and the place
    scatter = sqrt(float((rest**2).sum()) / freedom)
    half = student_quantile(1 - error / len(places) / 2, freedom) * max(scatter, 1e-4) / spread
    weeks = float(days[-1] - days[max(place, accepted)]) / WEEK
    weekly, total = (_ratio(slope * WEEK, half * WEEK, times, len(values) - place) for times in (1.0, weeks))
    return Fit(Creep(place, weekly, total), rest, is_certain=abs(slope) > half)


def _starts(days: Floats) -> Integers:
    """Return the places where a creep could begin."""
    places = np.arange(len(days))
    possible = places[(places <= len(days) - LEAST_RUNS) & (days[-1:] - days >= LEAST_DAYS)]
    spread = np.linspace(0, len(possible) - 1, MOST_STARTS).astype(int)
    return np.unique(possible[spread]) if len(possible) else possible


def _ratio(mean: float, half: float, times: float, runs: int) -> Ratio:
    return Ratio(exp(times * mean), exp(times * (mean - half)), exp(times * (mean + half)), runs)
