"""When trainings reach a threshold, where some never do, and where scores are known at evaluations only.

A time is known to the interval between two evaluations. Independent trainings differ in their seed; the rounds of one seed are
one training that is repeated, so they are no replicates of each other.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from math import inf
from statistics import fmean, median_low
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

ERROR = 0.05
"""The chance that an interval misses its truth."""
HALF = 0.5 - 1e-12
"""One half, but for rounding."""
LEAST_TRAININGS = 6
"""Fewer trainings give no interval of a median with both ends: all of five are on one side of it in 6 % of all cases."""


@dataclass(frozen=True)
class Arrival:
    """Where one training reached the threshold: after the place `after`, and at `at` at the latest.

    `after`: the last evaluation that did not show it, 0 without any. If it has not `arrived`, `at` is the last evaluation.
    """

    at: float
    arrived: bool
    after: float = 0.0

    @property
    def earliest(self) -> float:
        """The lower end of where it arrives."""
        return self.after if self.arrived else self.at

    @property
    def latest(self) -> float:
        """The upper end of where it arrives; infinite if it has not."""
        return self.at if self.arrived else inf


@dataclass(frozen=True)
class Median:
    """Where half of the trainings have arrived: between `earliest` and `latest`, as far as evaluations tell.

    `low`, `high`: its 95 % interval over all trainings there could be, with what evaluations leave open; infinite without an end.
    """

    earliest: float
    latest: float
    low: float
    high: float


@dataclass(frozen=True)
class Share:
    """The share of trainings that have arrived, in steps upwards: `shares[i]` from `places[i]` on, 0 before the first.

    `low` and `high`: its pointwise 95 % interval. `runs`: independent trainings; `arrived`: those that have arrived.
    `median`: None if it is not known, because too few have.
    """

    places: tuple[float, ...]
    shares: tuple[float, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]
    runs: int
    arrived: int
    median: Median | None


def share_arrived(arrivals: Sequence[Arrival]) -> Share:
    """Return the share of trainings that have arrived. One that ended earlier counts as long as it was observed (censoring).

    The estimate is that of Kaplan and Meier 1958. The interval is that of Clopper and Pearson 1934, from those that have arrived
    for certain up to those that may have: it holds whenever a training ended, and wherever between two evaluations it arrived.
    ValueError: there is no training.
    """
    from scipy.stats import CensoredData, ecdf

    if not arrivals:
        message = "the share of no trainings is unknown"
        raise ValueError(message)
    arrived = [one.at for one in arrivals if one.arrived]
    right = [one.at for one in arrivals if not one.arrived]
    found = ecdf(CensoredData(uncensored=arrived, right=right)).cdf
    places = sorted({*(one.at for one in arrivals), *(one.after for one in arrivals if one.arrived)})
    shares = tuple(map(float, found.evaluate(places)))
    certain = [sum(one.latest <= place for one in arrivals) for place in places]
    possible = [sum(one.after <= place if one.arrived else one.at < place for one in arrivals) for place in places]
    count = len(arrivals)
    low, high = (
        tuple(_lowest(each, count) for each in certain),
        tuple(1 - _lowest(count - each, count) for each in possible),
    )
    middle = _median(arrivals, places, (shares, low, high))
    return Share(tuple(places), shares, low, high, count, len(arrived), middle)


def _lowest(number: int, count: int) -> float:
    """Return the least probability at which `number` or more of `count` are not too rare (Clopper and Pearson)."""
    from scipy.special import betaincinv

    return float(betaincinv(number, count - number + 1, ERROR / 2)) if number else 0.0


def _median(arrivals: Sequence[Arrival], places: Sequence[float], curves: tuple[Sequence[float], ...]) -> Median | None:
    """Return the median of trainings from their curves: the share, and the ends of its interval."""
    latest, late, early = (
        next((place for place, value in zip(places, curve, strict=True) if value >= HALF), inf) for curve in curves
    )
    if latest == inf:
        return None
    half = sorted(one.earliest for one in arrivals)[(len(arrivals) - 1) // 2]
    return Median(min(half, latest), latest, early, late)


def over_thresholds(arrivals: Sequence[Arrival]) -> Arrival:
    """Return the mean over thresholds of where one training reached each: a single threshold rewards whoever is lucky there.

    A training that has missed one has not arrived, and is observed up to the least that this mean can be.
    """
    earliest, latest = (fmean(ends) for ends in zip(*((one.earliest, one.latest) for one in arrivals), strict=True))
    return _between(earliest, latest)


def over_rounds(arrivals: Sequence[Arrival]) -> Arrival:
    """Return the median over the rounds of one seed, which repeat one training: where half of them have arrived."""
    earliest, latest = (
        median_low(ends) for ends in zip(*((one.earliest, one.latest) for one in arrivals), strict=True)
    )
    return _between(earliest, latest)


def _between(earliest: float, latest: float) -> Arrival:
    if math.isinf(latest):
        return Arrival(earliest, arrived=False, after=earliest)
    return Arrival(latest, arrived=True, after=earliest)


def first_at(values: Sequence[float], places: Sequence[float], threshold: float, more_is_better: bool) -> Arrival:
    """Return where a series first reaches a threshold; values that are not numbers are skipped. ValueError: it is empty."""
    if not values:
        message = "an empty series reaches nothing"
        raise ValueError(message)
    before = 0.0
    for value, place in zip(values, places, strict=True):
        if math.isnan(value):
            continue
        if value >= threshold if more_is_better else value <= threshold:
            return Arrival(place, arrived=True, after=before)
        before = place
    return Arrival(before, arrived=False, after=before)
