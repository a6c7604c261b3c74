"""Curves of several trainings as one: their median at each place, with an interval that assumes nothing of their scatter."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    Series = np.ndarray[Any, np.dtype[np.float64]]

LEAST_TRAININGS = 5
"""Fewer trainings give no band: even from the lowest to the highest of four, it would miss the median in 12 % of all cases."""
COVERAGE = 0.95
"""What an interval holds at least, where there are six trainings or more; from the lowest to the highest of five it is 94 %."""


@dataclass(frozen=True)
class Spread:
    """Median at each place, float64 (places,), over `runs` independent trainings, and an interval of the true one.

    With fewer than `LEAST_TRAININGS` there is no interval: `low` and `high` are None.
    """

    middle: Series
    low: Series | None
    high: Series | None
    runs: int


def spread(curves: Sequence[Sequence[float] | Series]) -> Spread:
    """Return the median of curves with equal places, one of each training, with an interval of two of its order statistics.

    Longer curves are cut to the shortest. A place where a curve has no number has none. ValueError: there is no curve.
    """
    if not curves:
        message = "the spread of no curves is unknown"
        raise ValueError(message)
    shortest, count = min(map(len, curves)), len(curves)
    values = np.sort(np.array([list(curve)[:shortest] for curve in curves], np.float64), axis=0)
    unknown = np.isnan(values).any(axis=0)
    middle, low, high = (
        np.where(unknown, np.nan, each)
        for each in (np.median(values, axis=0), values[_rank(count)], values[-1 - _rank(count)])
    )
    return Spread(middle, low, high, count) if count >= LEAST_TRAININGS else Spread(middle, None, None, count)


def coverage(count: int) -> float:
    """Return the probability that the interval of this many trainings holds the median, if scores are continuous."""
    return 1 - 2 * _below(count, _rank(count))


def _rank(count: int) -> int:
    """Return how many values on each side are outside of the interval: as many as leave it `COVERAGE`, none of a few."""
    rank = 0
    while 2 * _below(count, rank + 1) <= 1 - COVERAGE:
        rank += 1
    return rank


def _below(count: int, rank: int) -> float:
    """Return the probability that no more than `rank` of `count` values are below their median."""
    from scipy.special import bdtr

    return float(bdtr(rank, count, 0.5))
