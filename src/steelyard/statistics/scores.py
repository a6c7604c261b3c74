"""The scores of trainings over seeds: the ratio of two contenders' scores, paired by seed where both trained on the same."""

from __future__ import annotations

from math import exp, inf
from statistics import fmean
from typing import TYPE_CHECKING

from steelyard.statistics.intervals import Ratio, logs, ratio_interval
from steelyard.statistics.unpaired import welch

if TYPE_CHECKING:
    from collections.abc import Mapping

SCORE, BEST, CONVERGENCE, LOSS = "score", "best score", "score over epochs", "training loss"
"""The main score after the last epoch, the best after any, its mean over all epochs, and the training loss of the last epoch."""

QUANTITIES = (SCORE, BEST, CONVERGENCE, LOSS)
"""The scores that a study can compare with claims on accuracy. A higher mean over epochs means a faster improvement."""

OF_DOCUMENTS = ("accuracy", "best validation accuracy", "best accuracy", "training loss", "convergence")
"""The names of these in documents that name the better side without a number."""

LEAST_SEEDS = 3
"""Fewer seeds give no interval: two trainings with different seeds do not show how much a third would differ."""


def ratio(a: Mapping[int, float], b: Mapping[int, float], more_is_better: bool) -> Ratio | None:
    """Return how much better A is than B, above 1 where A is better, from {seed: score}, with its 95 % interval over seeds.

    With fewer than `LEAST_SEEDS` the interval has no ends. None: a score is not above zero, or one of the two has none.
    """
    if not (a and b) or min((*a.values(), *b.values())) <= 0:
        return None
    first, second = (a, b) if more_is_better else (b, a)
    if len(first.keys() & second.keys()) >= LEAST_SEEDS:
        return ratio_interval(first, second)
    seeds = min(len(first), len(second))
    if seeds >= LEAST_SEEDS and (found := welch(list(first.values()), list(second.values()))):
        return found.ratio(0.05)
    return Ratio(exp(fmean(logs(list(first.values()))) - fmean(logs(list(second.values())))), 0.0, inf, seeds)
