"""Histories of which the truth is known: nights that scatter, with a change of level, a lucky spell or a creep, or without."""

from __future__ import annotations

from math import log
from typing import TYPE_CHECKING, Any

import numpy as np

from steelyard.statistics.shifts import LEAST_LEVEL, course

if TYPE_CHECKING:
    from collections.abc import Iterator

    from steelyard.statistics.shifts import Course

    Floats = np.ndarray[Any, np.dtype[np.float64]]

SCATTER = 0.02
KINDS = ("normal", "heavy tails", "slow outliers")
"""Normal noise; Student's t with three degrees of freedom; an exponential distribution. All have the same standard deviation."""


def noise(kind: str, count: int, seed: int) -> Floats:
    """Return logarithms of the times of nights without a change, relative to their mean."""
    random = np.random.default_rng([seed, KINDS.index(kind), count])
    if kind == "normal":
        return SCATTER * random.normal(size=count)
    if kind == "heavy tails":
        drawn: Floats = SCATTER / np.sqrt(3) * random.standard_t(3, count)
        return drawn
    return SCATTER * (random.exponential(size=count) - 1)


def creep(count: int, start: int, weekly: float) -> Floats:
    """Return what nights of a creep add from the night `start` on: each week takes `weekly` times as long as the last."""
    days = np.arange(count, dtype=np.float64)
    return np.where(days > start, (days - start) * log(weekly) / 7, 0.0)


def looks(series: Floats, error: float = 0.05) -> Iterator[Course]:
    """Look at a history every night, as a nightly job does."""
    for night in range(2 * LEAST_LEVEL, len(series) + 1):
        yield course(series[:night], error)


def is_slower(found: Course, share: float = 0.05) -> bool:
    """Return whether a nightly check would fail."""
    if found.creep:
        return found.creep.total.low > 1 + share
    return bool(found.reference and found.reference.ratio.low > 1 + share)
