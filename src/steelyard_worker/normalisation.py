"""Weights with which a reference normalises a batch by the statistics that another run computed.

A library that adds up a batch norm's many terms one after the other loses some hundred roundings of the mean and the variance.
That is no mistake, but ReLUs flip by it, and a flip changes gradients by a finite amount. A mean that is off is the same as
another shift, and a variance that is off the same as another scale. With these, the reference flips the same ReLUs, and what
else differs can be held to rounding.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from steelyard_worker.network import Network

    Array = np.ndarray[Any, Any]

# The error of one layer changes the statistics of those behind it, so it takes a few rounds, at most one for each layer.
MOST_ROUNDS = 12
# Relative to a standard deviation: far less than what flips a ReLU that noise of 16 float32 roundings does not.
SETTLED = 2.0**-23
# Smaller weights of a new statistic are none.
LEAST_SHARE = 1e-6
# A running statistic in float32 is off by one of its roundings, twice where it is computed from two terms.
STORED = 2.0**-23
MEAN, VARIANCE, SCALE, SHIFT = ".running_mean", ".running_var", ".gamma", ".beta"


def norms(network: Network, names: Mapping[str, Any]) -> list[str]:
    """Return the batch norms of a network of which these tensors have the statistics, and the network scale and shift."""
    known = {each.name for each in network.parameters}
    stems = (each.name.removesuffix(MEAN) for each in network.parameters if each.kind == "running_mean")
    return [
        stem
        for stem in stems
        if {stem + SCALE, stem + SHIFT} <= known and {stem + MEAN, stem + VARIANCE} <= names.keys()
    ]


def without_old_variances(network: Network, weights: Mapping[str, Array]) -> dict[str, Array]:
    """Return zeros for the running variances of batch norms that are trained; those of a frozen body normalise.

    Beside an old variance of 1, float32 would round away a new one of 1e-4.
    """
    trained = {each.name.removesuffix(SCALE) for each in network.parameters if each.kind == "gamma" and each.trainable}
    return {
        stem + VARIANCE: np.zeros_like(weights[stem + VARIANCE]) for stem in norms(network, weights) if stem in trained
    }


def like(
    network: Network,
    weights: Mapping[str, Array],
    moved: Mapping[str, Array],
    statistics: Callable[[Mapping[str, Array]], Mapping[str, Array]],
) -> dict[str, Array]:
    """Return `weights` with other scales and shifts of batch norms, by which a step normalises as one that ended with `moved`.

    `moved`: running statistics after one step of the other run, by name. `statistics(weights)` makes the same step of this one
    and returns the tensors after it.
    """
    exact = {name: np.asarray(array, np.float64) for name, array in weights.items()}
    stems = norms(network, moved)
    if not stems:
        return dict(weights)
    own = statistics(exact)
    shifted = statistics(exact | {stem + MEAN: exact[stem + MEAN] + 1 for stem in stems})
    # The weight of the new statistic. It is zero in a frozen body, which normalises by the old ones.
    shares = {stem: float(1 - np.mean(np.subtract(shifted[stem + MEAN], own[stem + MEAN]))) for stem in stems}
    moving = [stem for stem in stems if shares[stem] > LEAST_SHARE]
    found = dict(exact)
    for _ in range(MOST_ROUNDS):
        apart = 0.0
        for stem in moving:
            scale, shift = _corrected(exact, stem, own, moved, shares[stem], network.norm_epsilon)
            apart = max(apart, float(np.max(np.abs(shift - found[stem + SHIFT]))))
            found[stem + SCALE], found[stem + SHIFT] = scale, shift
        if apart < SETTLED:
            break
        own = statistics(found)
    return found


def _corrected(
    exact: Mapping[str, Array],
    stem: str,
    own: Mapping[str, Array],
    moved: Mapping[str, Array],
    share: float,
    epsilon: float,
) -> tuple[Array, Array]:
    """Return scale and shift of one batch norm, by which one that has the statistics `own` computes as one that has `moved`.

    Differences that are no more than the rounding of the running statistics, which are stored in float32, are not corrected.
    """

    def new(run: Mapping[str, Array], part: str) -> Array:
        found: Array = (np.asarray(run[stem + part], np.float64) - (1 - share) * exact[stem + part]) / share
        return found

    def stored(part: str) -> Array:
        found: Array = STORED * np.abs(np.asarray(moved[stem + part], np.float64)) / share
        return found

    mean, variance = new(moved, MEAN) - new(own, MEAN), new(moved, VARIANCE) - new(own, VARIANCE)
    mean = np.where(np.abs(mean) > stored(MEAN), mean, 0.0)
    true = np.maximum(new(own, VARIANCE), 0.0) + epsilon
    variance = np.where((np.abs(variance) > stored(VARIANCE)) & (true + variance > 0), variance, 0.0)
    other = true + variance
    scale = exact[stem + SCALE]
    return scale * np.sqrt(true / other), exact[stem + SHIFT] - scale * mean / np.sqrt(other)
