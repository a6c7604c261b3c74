"""The plan of a decision, and the verdict on each pair."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import ceil, exp, inf, log1p, sqrt
from typing import TYPE_CHECKING, Literal

import numpy as np

if TYPE_CHECKING:
    from steelyard.statistics.looks import Look
    from steelyard.statistics.pair_evidence import Floats, Integers

Kind = Literal["better", "worse", "equal", "undecided"]

OPPOSITE: dict[Kind, Kind] = {
    "better": "worse",
    "worse": "better",
    "equal": "equal",
    "undecided": "undecided",
}
ERROR_WEIGHTS = {3: 3.0, 4: 2.0, 5: 2.0, 6: 2.0}
"""Round -> its weight in the division of the error; 1 for all others. Most close comparisons end after three to six rounds;
a contender several times slower than the others is decided after two."""
PLANNED_SHARE = 0.5
"""The part of the error for all planned pairs together; more if they are more than half of all pairs. With thirty of 595 pairs
planned, their logarithmic intervals are 1.6 times narrower after three rounds, and those of the others 1.14 times wider
until planned pairs are decided and pass their part on."""


@dataclass(frozen=True)
class DecisionPlan:
    """The rule of decisions: the error over all looks and pairs together, and the rounds after which it looks."""

    delta: float = 0.02
    """Relative differences below this do not matter in practice."""
    error: float = 0.05
    """Probability of any false difference, and of any false equality, over all pairs and all looks."""
    least_rounds: int = 2
    most_rounds: int = 12
    planned: frozenset[frozenset[str]] = frozenset()
    """The pairs of contenders that matter most. Together they have at least half of the error."""
    retired: frozenset[str] = frozenset()
    """Contenders of retired frameworks. If one of them leads, rounds go on until the best of the others is decided, too."""

    def __post_init__(self) -> None:
        if not (self.delta > 0 and 0 < self.error < 1 and 1 <= self.least_rounds <= self.most_rounds):
            raise ValueError(f"This plan cannot decide anything: {self}.")

    @classmethod
    def single_look(cls, rounds: int, delta: float = 0.02) -> DecisionPlan:
        """Return the plan of a fixed protocol: one look, after `rounds` rounds, with the whole error."""
        return cls(delta=delta, least_rounds=rounds, most_rounds=rounds)

    def error_at(self, rounds: Integers) -> Floats:
        """Return the part of the error for pairs with these numbers of rounds; the parts of all looks add up to `error`.

        Outside the plan, the part of the first or last look is used; only an interval is computed there.
        """
        looks = range(self.least_rounds, self.most_rounds + 1)
        weights = np.array([ERROR_WEIGHTS.get(number, 1.0) for number in looks])
        parts: Floats = self.error * weights / weights.sum()
        return parts[np.clip(rounds, self.least_rounds, self.most_rounds) - self.least_rounds]

    def weights(self, names: tuple[str, ...]) -> Floats:
        """Return the initial part of the error by pair of these contenders, in the order of `pair_indices`."""
        is_planned = np.array([frozenset(pair) in self.planned for pair in _pairs(names)], dtype=bool)
        pairs, planned = len(is_planned), int(is_planned.sum())
        if not 0 < planned < pairs:
            return np.full(pairs, 1.0 / max(1, pairs))
        share = max(PLANNED_SHARE, planned / pairs)
        return np.where(is_planned, share / planned, (1 - share) / (pairs - planned))


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
    for pair, (first, second) in enumerate(_pairs(names)):
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


def _pairs(names: tuple[str, ...]) -> list[tuple[str, str]]:
    return [(first, second) for place, first in enumerate(names) for second in names[place + 1 :]]


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
