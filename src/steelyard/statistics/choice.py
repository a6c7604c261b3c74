"""Probabilities of being the best, combined costs of several goals, and contenders that no other beats in two goals."""

from __future__ import annotations

from dataclasses import replace
from itertools import permutations
from math import exp, fsum, inf, log
from typing import TYPE_CHECKING

import numpy as np

from steelyard.statistics.decision import table
from steelyard.statistics.pair_evidence import pair_evidence, pair_indices

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from steelyard.statistics.decision import Ranking
    from steelyard.statistics.intervals import Rounds

DRAWS = 10_000
"""The number of draws of the true means. With it, a probability of one half has an error of half a percentage point."""


def combined(costs: Mapping[str, Rounds], weights: Mapping[str, float]) -> dict[int, float]:
    """Return {round: combined cost} of several goals: the geometric mean of the costs, weighted by goal.

    `costs` and `weights` are by goal; weights are above zero. Only rounds that have every cost count.
    """
    common = set.intersection(*(set(costs[goal]) for goal in weights))
    return {number: _mean({goal: costs[goal][number] for goal in weights}, weights) for number in sorted(common)}


def combined_bounds(
    bounds: Mapping[str, Mapping[int, tuple[float, float]]], weights: Mapping[str, float]
) -> dict[int, tuple[float, float]]:
    """Return the least and the largest cost of several goals as one, from those of each goal, which may be 0 and infinite."""
    common = set.intersection(*(set(bounds[goal]) for goal in weights))
    found = {}
    for number in sorted(common):
        least, largest = ({goal: bounds[goal][number][end] for goal in weights} for end in (0, 1))
        found[number] = (_mean(least, weights), _mean(largest, weights))
    return found


def _mean(costs: Mapping[str, float], weights: Mapping[str, float]) -> float:
    """Return the weighted geometric mean; 0 if a cost is 0, infinite if one is."""
    if not all(costs.values()):
        return 0.0
    if inf in costs.values():
        return inf
    return exp(fsum(weight * log(costs[goal]) for goal, weight in weights.items()) / fsum(weights.values()))


def probabilities(costs: Mapping[str, Rounds], leader: str, draws: int = DRAWS, seed: int = 1) -> dict[str, float]:
    """Return {contender: probability of the smallest true cost}; empty without two rounds, which show the scatter.

    `costs`: contender -> {round: positive value}. This is a parametric bootstrap over rounds: the mean log ratio of each
    contender to the leader is drawn from Student's t with the scatter and the degrees of freedom that its verdict uses.
    Contenders that share fewer than two rounds with the leader are left out.
    """
    others = sorted(costs.keys() - {leader})
    evidence = pair_evidence(table([costs[name] for name in (leader, *others)]))
    against = pair_indices(len(costs))[0] == 0
    known = evidence.rounds[against] >= 2
    if not known.any():
        return {}
    names = [leader, *(name for name, is_known in zip(others, known, strict=True) if is_known)]
    behind, freedom = -evidence.mean[against][known], evidence.freedom[against][known]
    error = np.sqrt(evidence.variance[against] / np.maximum(evidence.rounds[against], 1))[known]
    draw, shape = np.random.default_rng(seed), (draws, len(behind))
    # The leader's noise is part of every difference from it, so all differences share one draw.
    noise = (draw.normal(size=shape) + draw.normal(size=(draws, 1))) / np.sqrt(2)
    scale = np.sqrt(freedom / draw.chisquare(freedom, shape))
    found = np.hstack([np.zeros((draws, 1)), behind + error * scale * noise])
    is_best = found == found.min(axis=-1, keepdims=True)  # contenders that are equal to the last digit share a draw
    shares = (is_best / is_best.sum(axis=-1, keepdims=True)).mean(axis=0)
    return dict(zip(names, shares.tolist(), strict=True))


def only(ranking: Ranking, keys: Collection[str]) -> Ranking:
    """Return the ranking of some of the contenders. Its verdicts are unchanged: the error stays divided over all pairs."""
    order = tuple(key for key in ranking.order if key in keys)
    verdicts = tuple(each for each in ranking.verdicts if each.a in order and each.b in order)
    decided = {
        key
        for each in verdicts
        if order[0] in (each.a, each.b) and each.kind != "undecided"
        for key in (each.a, each.b)
    }
    undecided = frozenset(order[1:]) - decided
    leader = order[0] if ranking.leader and order else None
    return replace(ranking, order=order, leader=leader, verdicts=verdicts, still_undecided=undecided)


def undominated(keys: Collection[str], one: Ranking, other: Ranking) -> tuple[str, ...]:
    """Return the contenders that no other dominates, that is, is shown to beat in one goal and equals or beats in the other."""
    beaten = {
        key
        for key, rival in permutations(keys, 2)
        if {_kind(one, rival, key), _kind(other, rival, key)} in ({"better"}, {"better", "equal"})
    }
    return tuple(key for key in keys if key not in beaten)


def _kind(ranking: Ranking, first: str, second: str) -> str:
    verdict = ranking.between(first, second)
    return verdict.kind if verdict else "undecided"
