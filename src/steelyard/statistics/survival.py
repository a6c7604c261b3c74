"""When runs reach a threshold, where some never do: the share that has arrived, by Kaplan and Meier."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from statistics import fmean
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

CONFIDENCE = 0.95


@dataclass(frozen=True)
class Arrival:
    """One run: where it reached the threshold, or where it ended without having reached it (`arrived` is false then)."""

    at: float
    arrived: bool


@dataclass(frozen=True)
class Share:
    """The share of runs that have arrived, as a function of steps upwards: `shares[i]` from `places[i]` on, 0 before the first.

    `low` and `high`: its pointwise 95 % interval, by the log-log transform. `runs` of them were observed; `arrived` have arrived.
    """

    places: tuple[float, ...]
    shares: tuple[float, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]
    runs: int
    arrived: int

    @property
    def median(self) -> float | None:
        """Where half of the runs have arrived; None if it is not known, because too few have."""
        return next((place for place, share in zip(self.places, self.shares, strict=True) if share >= 0.5), None)


def share_arrived(arrivals: Sequence[Arrival]) -> Share:
    """Return the share of runs that have arrived. A run that ended earlier counts as long as it was observed (censoring).

    The estimate is that of Kaplan and Meier 1958. ValueError: there is no run.
    """
    from scipy.stats import CensoredData, ecdf

    if not arrivals:
        message = "the share of no runs is unknown"
        raise ValueError(message)
    arrived = [each.at for each in arrivals if each.arrived]
    right = [each.at for each in arrivals if not each.arrived]
    found = ecdf(CensoredData(uncensored=arrived, right=right)).cdf
    with warnings.catch_warnings():  # where all or none have arrived, the interval is undefined
        warnings.simplefilter("ignore", RuntimeWarning)
        ends = found.confidence_interval(CONFIDENCE, method="log-log")
    low, high = np.nan_to_num(ends.low.probabilities, nan=0.0), np.nan_to_num(ends.high.probabilities, nan=1.0)
    return Share(
        tuple(found.quantiles.tolist()), tuple(found.probabilities.tolist()), tuple(low.tolist()), tuple(high.tolist()),
        len(arrivals), len(arrived),
    )  # fmt: skip


def mean_over_thresholds(shares: Sequence[Share]) -> float | None:
    """Return the mean over thresholds of the median place of arrival; None unless half of the runs reach every threshold.

    A single threshold rewards whoever happens to be fast there; the mean over several does less so.
    """
    medians = [each.median for each in shares]
    known = [each for each in medians if each is not None]
    return fmean(known) if known and len(known) == len(medians) else None


def first_at(values: Sequence[float], places: Sequence[float], threshold: float, more_is_better: bool) -> Arrival:
    """Return where a series first reaches a threshold; values that are not numbers are skipped. ValueError: it is empty."""
    if not values:
        message = "an empty series reaches nothing"
        raise ValueError(message)
    for value, place in zip(values, places, strict=True):
        if not math.isnan(value) and (value >= threshold if more_is_better else value <= threshold):
            return Arrival(place, arrived=True)
    return Arrival(places[-1], arrived=False)
