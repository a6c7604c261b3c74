"""The verdict on each pair."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import ceil, exp, inf, log1p, sqrt
from typing import TYPE_CHECKING, Literal

import numpy as np

from steelyard.statistics.decision_plan import pairs_of

if TYPE_CHECKING:
    from steelyard.statistics.decision_plan import DecisionPlan
    from steelyard.statistics.looks import Look
    from steelyard.statistics.pair_evidence import Floats

Kind = Literal["better", "worse", "equal", "undecided"]

OPPOSITE: dict[Kind, Kind] = {
    "better": "worse",
    "worse": "better",
    "equal": "equal",
    "undecided": "undecided",
}


@dataclass(frozen=True)
class Verdict:
    """The result for A against B. `ratio`, `low`, `high`: value of A over value of B; below 1, A is better."""

    kind: Kind
    ratio: float
    low: float
    high: float
    rounds: int
    rounds_still_needed: int
    """Estimated number of further rounds until a decision; 0 once decided."""
    delta_used: float
    """The plan's delta, or 1.4 times the scatter between rounds if that is larger."""
    a: str
    b: str
    error: float
    """Error of the interval: the level of this pair's step in Holm's procedure; twice that for an equality."""
    joint_low: float = 0.0
    joint_high: float = inf
    """Ends of the wider interval that holds for all pairs and looks together, at the plan's error."""
    beyond_plan: bool = False
    """Whether `delta_used` is more than the plan's delta, so that equality is no more than "not told apart within it"."""

    def flipped(self) -> Verdict:
        """Return the same verdict with A and B exchanged."""
        return replace(
            self,
            kind=OPPOSITE[self.kind],
            ratio=1 / self.ratio,
            low=1 / self.high,
            high=1 / self.low,
            a=self.b,
            b=self.a,
            joint_low=1 / self.joint_high,
            joint_high=1 / self.joint_low if self.joint_low else inf,
        )


def verdicts(look: Look, names: tuple[str, ...], plan: DecisionPlan) -> list[Verdict]:
    """Return the verdict on every pair with a common round; A is the first of the pair in `names`.

    Equality is checked first: a difference within the margin does not matter in practice.
    """
    is_equal, is_different = np.isfinite(look.equal), np.isfinite(look.different)
    errors = np.where(is_equal, 2 * look.equal, np.where(is_different, look.different, look.open_error))
    halves, joint_halves = look.evidence.half_width(errors), joint_half_width(look, plan)
    found = []
    for pair, (first, second) in enumerate(pairs_of(names)):
        rounds, mean = int(look.evidence.rounds[pair]), float(look.evidence.mean[pair])
        if not rounds:
            continue
        kind: Kind = "undecided"
        if is_equal[pair]:
            kind = "equal"
        elif is_different[pair]:
            kind = "better" if mean < 0 else "worse"
        half, joint = float(halves[pair]), float(joint_halves[pair])
        found.append(
            Verdict(
                kind=kind,
                ratio=exp(mean),
                low=exp(mean - half),
                high=exp(mean + half),
                rounds=rounds,
                rounds_still_needed=_still_needed(look, pair, plan) if kind == "undecided" else 0,
                delta_used=float(look.margin),
                a=first,
                b=second,
                error=float(errors[pair]),
                joint_low=exp(mean - joint),
                joint_high=exp(mean + joint),
                beyond_plan=bool(look.margin > plan.delta),
            )
        )
    return found


def joint_half_width(look: Look, plan: DecisionPlan) -> Floats:
    """Return half the width of log intervals that hold jointly, for all pairs and looks, except with the plan's error.

    Holm's procedure tests its last pairs with more of the error than its first pairs, so the intervals of its steps are
    valid one by one, but not jointly. Here every pair keeps its initial part (Bonferroni).
    """
    return look.evidence.half_width(plan.error_at(look.evidence.rounds) * look.weights)


def _still_needed(look: Look, pair: int, plan: DecisionPlan) -> int:
    """Return after how many more rounds the interval is narrow enough if mean and variance stay as they are.

    Beyond the plan's last round, the quantile of that round is used, which is an upper bound.
    """
    from scipy.special import stdtrit

    evidence = look.evidence
    rounds, mean = int(evidence.rounds[pair]), abs(float(evidence.mean[pair]))
    least = max(1, plan.least_rounds - rounds)
    if rounds < 2:
        return least
    numbers = np.arange(rounds + least, max(plan.most_rounds, rounds + least) + 1)
    share = float(look.open_error[pair] / plan.error_at(evidence.rounds)[pair])
    quantiles = stdtrit(numbers - 1 + float(evidence.others_weight[pair]), 1 - share * plan.error_at(numbers) / 2)
    distance = max(log1p(float(look.margin)) - mean, mean)
    needed = (quantiles * sqrt(float(evidence.variance[pair])) / distance) ** 2
    enough = numbers[needed <= numbers]
    return int(enough[0] if enough.size else ceil(needed[-1])) - rounds
