"""One look at a comparison: Holm's procedure over all pairs, once for differences and once for equalities."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from steelyard.statistics.pair_evidence import PairEvidence, pair_evidence, pair_indices

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from steelyard.statistics.decision_plan import DecisionPlan
    from steelyard.statistics.pair_evidence import Floats, Integers

MARGIN_OVER_SCATTER = 1.4
"""Claiming equality needs a margin of at least 1.4 times the scatter; with less, twelve rounds are rarely enough."""

OTHERS_AT_TWO_ROUNDS = 3
"""After two rounds, a pair is judged only if the others give at least this many degrees of freedom, as in five contenders. Two
rounds of one pair agree by chance too often where processes are in one of a few states.
"""


@dataclass(frozen=True)
class Look:
    """The decisions after a round. Arrays of shape (...), (..., pairs) or (..., contenders)."""

    evidence: PairEvidence
    scatter: Floats
    """Median over the pairs of the standard deviation of a round's log ratio; 0 where no pair has two rounds."""
    margin: Floats
    """Relative difference that does not matter: the plan's, or 1.4 times the scatter if that is larger."""
    different: Floats
    """Error at which each pair is different, by its share in Holm's procedure; NaN if it is not."""
    equal: Floats
    """Error at which each pair is equal within the margin, likewise: two one-sided tests, each at this error."""
    open_error: Floats
    """Error of the interval of an undecided pair: it contains 0, and it is not inside the margin."""
    order: Integers
    """The contenders, best first."""
    weights: Floats
    """Part of the error of every pair before any pair is decided, shape (pairs,); the parts add up to 1."""

    @property
    def decided(self) -> NDArray[np.bool_]:
        """Pairs that are different or equal."""
        return np.isfinite(self.different) | np.isfinite(self.equal)

    @property
    def undecided(self) -> NDArray[np.bool_]:
        """Contenders whose comparison with the leader is not decided."""
        leader = self.order[..., :1]
        decided = _square(self.decided, self.decided, self.order.shape[-1])
        found = ~np.take_along_axis(decided, leader[..., None], axis=-2)[..., 0, :]
        np.put_along_axis(found, leader, False, axis=-1)
        return found


def look(logs: Floats, plan: DecisionPlan, weights: Floats | None = None) -> Look:
    """Judge every pair on the logarithms of the values: shape (..., contenders, rounds), NaN where there is none.

    `weights`: the initial part of the error by pair; None: equal parts.
    A pair is tested at the error that the plan provides for its number of rounds. The sum of these errors is the plan's
    error, so the looks together cannot be wrong more often, whatever ends the run.
    """
    evidence = pair_evidence(logs)
    pairs = evidence.mean.shape[-1]
    weights = np.full(pairs, 1.0 / max(1, pairs)) if weights is None else weights
    scatter = np.sqrt(_median(evidence.variance))
    margin = np.maximum(plan.delta, MARGIN_OVER_SCATTER * scatter)
    error = plan.error_at(evidence.rounds)
    enough = np.where(evidence.others_freedom >= OTHERS_AT_TWO_ROUNDS, 2, min(3, plan.most_rounds))
    testable = evidence.rounds >= np.maximum(enough, plan.least_rounds)
    distance = np.abs(evidence.mean)
    to_margin = np.log1p(margin)[..., None] - distance
    different = holm_errors(np.where(testable, evidence.p_value(distance), np.inf), error, weights)
    equal = holm_errors(np.where(testable, evidence.p_value(to_margin) / 2, np.inf), error, weights)
    return Look(
        evidence=evidence,
        scatter=scatter,
        margin=margin,
        different=different,
        equal=equal,
        open_error=error * np.minimum(_next_share(different, weights), 2 * _next_share(equal, weights)),
        order=_order(logs, evidence.mean),
        weights=weights,
    )


def holm_errors(p_values: Floats, error: Floats, weights: Floats) -> Floats:
    """Return the error at which Holm's step-down procedure rejects each hypothesis; NaN for those it does not reject.

    Shape (..., hypotheses). `error`: of the whole family, for every hypothesis on its own scale. `weights`: the part of it
    with which a hypothesis begins, shape (hypotheses,), above 0; rejected hypotheses pass theirs on to the others, in
    proportion. Source: Holm 1979, "A simple sequentially rejective multiple test procedure".
    """
    scaled = p_values / (error * weights)
    places = np.argsort(scaled, axis=-1, kind="stable")
    sorted_weights = np.broadcast_to(weights, scaled.shape)
    sorted_weights = np.take_along_axis(sorted_weights, places, axis=-1)
    left = np.cumsum(sorted_weights[..., ::-1], axis=-1)[..., ::-1]
    rejected = np.logical_and.accumulate(np.take_along_axis(scaled, places, axis=-1) * left <= 1, axis=-1)
    found = np.full(scaled.shape, np.nan)
    np.put_along_axis(found, places, np.where(rejected, sorted_weights / left, np.nan), axis=-1)
    errors: Floats = found * error
    return errors


def _next_share(rejected: Floats, weights: Floats) -> Floats:
    """Return each pair's share of the error in the step with which Holm's procedure stopped."""
    left = np.where(np.isfinite(rejected), 0.0, weights).sum(-1, keepdims=True)
    share: Floats = weights / np.where(left > 0, left, 1.0)
    return share


def _square(of_first: Any, of_second: Any, contenders: int) -> NDArray[np.bool_]:
    """Return the values of the first and of the second contender of every pair as a matrix (contender, other contender)."""
    first, second = pair_indices(contenders)
    found = np.zeros((*of_first.shape[:-1], contenders, contenders), dtype=bool)
    found[..., first, second] = of_first
    found[..., second, first] = of_second
    return found


def _median(values: Floats) -> Floats:
    """Return the median over the pairs, of the known values; 0 where none is known."""
    known = np.isfinite(values).sum(-1)
    if values.shape[-1] == 0:
        return np.zeros(values.shape[:-1])
    ordered = np.sort(values, axis=-1)  # NaN comes last
    middle = (np.maximum(known - 1, 0) // 2, known // 2)
    low, high = (np.take_along_axis(ordered, place[..., None], axis=-1)[..., 0] for place in middle)
    return np.where(known > 0, (low + high) / 2, 0.0)


def _order(logs: Floats, mean: Floats) -> Integers:
    """Order by pairs won, not by mean: contenders that ran in different rounds ran under different conditions."""
    won = _square(mean < 0, mean > 0, logs.shape[-2]).sum(-1)
    finished = np.isfinite(logs).sum(-1)
    # Sums depend on the order of their terms; the order of contenders must not.
    total = np.nansum(np.sort(logs, axis=-1), axis=-1)
    return np.lexsort((total / np.maximum(finished, 1), -won, finished == 0), axis=-1)
