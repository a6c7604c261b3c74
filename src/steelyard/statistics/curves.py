"""Curves of several runs as one: their mean, and the range between the lowest and the highest."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    Series = np.ndarray[Any, np.dtype[np.float64]]


@dataclass(frozen=True)
class Spread:
    """Mean, lowest and highest value at each place, float64 (places,), over `runs` runs."""

    mean: Series
    low: Series
    high: Series
    runs: int


def spread(curves: Sequence[Sequence[float]]) -> Spread:
    """Return the spread of curves with equal places; longer ones are cut to the shortest. ValueError: there is no curve."""
    if not curves:
        message = "the spread of no curves is unknown"
        raise ValueError(message)
    shortest = min(map(len, curves))
    values = np.array([list(curve)[:shortest] for curve in curves], np.float64)
    return Spread(values.mean(axis=0), values.min(axis=0), values.max(axis=0), len(curves))
