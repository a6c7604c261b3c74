"""The evidence about every pair of contenders from values per round: mean log ratio, its scatter, and intervals.

Arrays of many comparisons are judged at once, so that simulations of the error rate run the same code as a measurement.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, log
from typing import TYPE_CHECKING, Any

import numpy as np

from steelyard.statistics.intervals import WIDEST_LOG

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    Floats = NDArray[np.float64]
    Integers = NDArray[np.intp]

OTHERS_WEIGHT = 3.0
"""The largest weight of the other contenders' scatter in the variance of a pair, in degrees of freedom.

A larger weight finds differences sooner if all contenders are equally noisy, and is wrong more often if one is
noisier than the others. Simulated with three contenders, the worst number: if one is 3, 10 or 100 times as noisy, a
difference is wrong in 3.3, 5.5 and 6.2 % of families. With a weight of 2.5, a true difference of 5 % at 0.8 % scatter
would no longer be found within three rounds in 95 % of comparisons of five contenders.
"""
OTHERS_OVER_OWN = 1.5
"""The largest weight of the other contenders per degree of freedom of the pair itself: 3 from three rounds on."""
OWN_ROUNDS = 5
"""The least number of rounds after which a pair may also be decided on its own scatter alone. Many pairs require more rounds."""
BY_CHANCE = 0.02
"""The largest expected number of pairs that look different only because of the states of their processes.

If half of all processes are slow for their whole life, one contender of a pair is slow and the other is not in every round with
probability 2 * 4^-rounds. Such a pair has hardly any scatter of its own. When five rounds were enough for any number of pairs,
8.3 % of 1,000 simulated families of twelve contenders were called different.
"""
OWN_SHARE = 0.25
"""The part of the error for a pair's own scatter. Without it, one very noisy contender would hide all other differences."""


@dataclass(frozen=True)
class PairEvidence:
    """Arrays of shape (..., pairs), in the order of `pair_indices`; 0 degrees of freedom where nothing is known."""

    mean: Floats
    """Mean of d = ln(value of the first / value of the second) over the rounds that both finished; NaN without one."""
    rounds: Integers
    own_variance: Floats
    """Variance of d over these rounds, with one degree of freedom less than rounds."""
    others_variance: Floats
    """Variance of d if the pair were as noisy as the other contenders in these rounds."""
    others_freedom: Integers

    @property
    def own_freedom(self) -> Floats:
        """Degrees of freedom of `own_variance`."""
        freedom: Floats = np.maximum(self.rounds - 1.0, 0.0)
        return freedom

    @property
    def others_weight(self) -> Floats:
        """Degrees of freedom with which the other contenders count."""
        most = np.minimum(OTHERS_WEIGHT, OTHERS_OVER_OWN * self.own_freedom)
        return np.minimum(most, self.others_freedom)

    @property
    def freedom(self) -> Floats:
        """Degrees of freedom of `variance`."""
        return self.own_freedom + self.others_weight

    @property
    def variance(self) -> Floats:
        """Variance of d, pooled: exact for equally noisy contenders, with less pooling as rounds are added."""
        squares = self.others_weight * self.others_variance + self.own_freedom * self.own_variance
        with np.errstate(invalid="ignore", divide="ignore"):
            return squares / self.freedom

    def half_width(self, error: ArrayLike) -> Floats:
        """Return half the width of the intervals that miss the true log ratio with probability `error` at one look."""
        from scipy.special import stdtrit

        widths = []
        for freedom, standard_error, share in self._scales():
            with np.errstate(invalid="ignore"):
                quantile = stdtrit(np.maximum(freedom, 1.0), 1 - share * np.asarray(error) / 2)
                widths.append(np.where(share > 0, quantile * standard_error, np.inf))
        return np.fmin(np.fmin(*widths), WIDEST_LOG)

    def p_value(self, distance: Floats) -> Floats:
        """Return the smallest `error` whose half width is below `distance`; 1 where there is none."""
        from scipy.special import stdtr

        found = np.ones(self.mean.shape)
        for freedom, standard_error, share in self._scales():
            with np.errstate(invalid="ignore", divide="ignore"):
                p = 2 * stdtr(np.maximum(freedom, 1.0), -distance / standard_error) / share
            found = np.fmin(found, np.where((distance > 0) & (share > 0), p, 1.0))
        return found

    def _scales(self) -> list[tuple[Floats, Floats, Floats]]:
        """Return the pooled and the own (degrees of freedom, standard error of the mean, share of the error)."""
        own = np.where((self.others_weight > 0) & (self.rounds >= own_rounds(self.rounds.shape[-1])), OWN_SHARE, 0.0)
        pooled = np.where(self.rounds >= 2, 1.0 - own, 0.0)
        counts = np.maximum(self.rounds, 1)
        return [
            (self.freedom, np.sqrt(self.variance / counts), pooled),
            (self.own_freedom, np.sqrt(self.own_variance / counts), own),
        ]


def own_rounds(pairs: int) -> int:
    """Return the number of rounds from which on the scatter of a pair itself may decide: 5 for 5 contenders, 7 for 12."""
    return max(OWN_ROUNDS, ceil(log(2 * max(pairs, 1) / BY_CHANCE, 4)))


def pair_indices(contenders: int) -> tuple[Integers, Integers]:
    """Return the first and the second contender of every pair: (0, 1), (0, 2), ... (1, 2), ..."""
    return np.triu_indices(contenders, 1)


def pair_evidence(logs: Floats) -> PairEvidence:
    """Return the evidence from the logarithms of the values: shape (..., contenders, rounds), NaN where there is none.

    The variance of a pair comes from its own rounds and, where other contenders finished the same rounds, from those:
    the rest of all values after the means of contenders and rounds, and the difference of the pair itself, are
    removed. Another contender counts up to the first of these rounds that it did not finish.
    """
    first, second = pair_indices(logs.shape[-2])
    finished = np.isfinite(logs)
    common = finished[..., first, :] & finished[..., second, :]
    number = np.cumsum(common, axis=-1)
    shocks, counted = _shocks(np.where(finished, logs, 0.0), finished, common, number)
    each = np.arange(len(first))
    squares = (shocks[..., each, first, :] - shocks[..., each, second, :]) ** 2
    contenders = counted.sum(-2)
    around_mean = (shocks**2).sum(-2) - shocks.sum(-2) ** 2 / np.maximum(contenders, 1)
    others = np.maximum(around_mean - squares / 2, 0.0).sum(-1)
    others_freedom = np.maximum(contenders - 2, 0).sum(-1)
    rounds = common.sum(-1)
    with np.errstate(invalid="ignore", divide="ignore"):
        return PairEvidence(
            mean=_differences(logs, common, first, second).sum(-1) / rounds,
            rounds=rounds,
            own_variance=squares.sum(-1) / np.maximum(rounds - 1, 1),
            others_variance=2 * others / np.maximum(others_freedom, 1),
            others_freedom=others_freedom,
        )


def _differences(logs: Floats, common: NDArray[np.bool_], first: Integers, second: Integers) -> Floats:
    return np.where(common, logs[..., first, :] - logs[..., second, :], 0.0)


def _shocks(logs: Floats, finished: Any, common: Any, number: Any) -> tuple[Floats, NDArray[np.bool_]]:
    """Return the distance of every value from the mean of the contender's earlier values, by pair, contender and round.

    Shape (..., pairs, contenders, rounds). Only rounds common to the pair count. The factor makes the variance that of one
    value, and the results of one contender independent (Helmert's transformation): their squares add up to the sum
    of squares around the mean. All contenders of a round have the same earlier rounds, so the mean over contenders contains
    the effect of the rounds.
    """
    common, number = common[..., None, :], number[..., None, :]
    values = logs[..., None, :, :] * common
    missed = np.cumsum(common & ~finished[..., None, :, :], axis=-1)
    counted = common & (missed == 0) & (number >= 2)
    before = np.maximum(number - 1.0, 1.0)
    earlier = (np.cumsum(values, axis=-1) - values) / before
    return np.where(counted, np.sqrt(before / (before + 1)) * (values - earlier), 0.0), counted
