"""The plan of a decision, Holm's levels over all pairs, and the verdict on each pair."""

from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import ceil, log1p, sqrt
from typing import Literal

from steelyard.statistics.calibration import NoiseFloor
from steelyard.statistics.intervals import LogRatio, student_quantile

Kind = Literal["better", "worse", "equal", "undecided"]
Pair = tuple[str, str]

DELTA_OVER_NOISE = 1.4
"""Claiming equality needs a delta of at least 1.4 s_d0; with less, twelve rounds are rarely enough."""
OPPOSITE: dict[Kind, Kind] = {
    "better": "worse",
    "worse": "better",
    "equal": "equal",
    "undecided": "undecided",
}


@dataclass(frozen=True)
class DecisionPlan:
    """How a run decides. The defaults depend on each other: `error` was calibrated for looks at rounds 3 to 12.

    With error = 0.0125 at each look, the interval misses the truth at any of the ten looks in at most 5 % of
    comparisons (4.2 % simulated); the uncorrected 0.05 misses in 15 %. Looks from round 2 on need 0.011, and
    looks far beyond round 12 also need a smaller error (up to round 30, 0.0125 misses in 7 %).
    """

    delta: float = 0.02
    """Relative differences below this do not matter in practice."""
    error: float = 0.0125
    """Two-sided error of one look, shared by all pairs."""
    least_rounds: int = 3
    most_rounds: int = 12

    def __post_init__(self) -> None:
        if not (self.delta > 0 and 0 < self.error < 1 and 1 <= self.least_rounds <= self.most_rounds):
            raise ValueError(f"This plan cannot decide anything: {self}.")

    @classmethod
    def single_look(cls, rounds: int, delta: float = 0.02) -> "DecisionPlan":
        """Return the plan of a fixed protocol: one look, after `rounds` rounds, at the full 5 %."""
        return cls(delta=delta, error=0.05, least_rounds=rounds, most_rounds=rounds)


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
    """The plan's delta, or 1.4 times the noise floor if that is larger."""
    a: str
    b: str
    error: float
    """Error of the interval: the level of this pair's step in Holm's procedure."""

    def flipped(self) -> "Verdict":
        """Return the same verdict with A and B exchanged."""
        return replace(
            self,
            kind=OPPOSITE[self.kind],
            ratio=1 / self.ratio,
            low=1 / self.high,
            high=1 / self.low,
            a=self.b,
            b=self.a,
        )


@dataclass(frozen=True)
class Look:
    """One interim analysis: the estimates after a round, and Holm's levels for all pairs."""

    estimates: Mapping[Pair, LogRatio]
    different: Mapping[frozenset[str], float]
    equal: Mapping[frozenset[str], float]
    open_level: float
    delta: float
    plan: DecisionPlan

    @classmethod
    def of(cls, estimates: Mapping[Pair, LogRatio], contenders: int, delta: float, plan: DecisionPlan) -> "Look":
        """Share the plan's error over all pairs of `contenders` contenders, including pairs without data."""
        log_delta = log1p(delta)
        eligible = {frozenset(pair): e for pair, e in estimates.items() if e.rounds >= plan.least_rounds}
        pairs = contenders * (contenders - 1) // 2
        different = holm_levels({p: e.difference_p() for p, e in eligible.items()}, plan.error, pairs)
        equal = holm_levels({p: e.equality_p(log_delta) for p, e in eligible.items()}, plan.error, pairs)
        fewest = min(len(different), len(equal))
        return cls(estimates, different, equal, plan.error / max(1, pairs - fewest), delta, plan)

    def verdict(self, pair: Pair) -> Verdict:
        """Judge one pair. Equality is checked first: a difference within delta does not matter in practice."""
        estimate, both = self.estimates[pair], frozenset(pair)
        kind: Kind = "undecided"
        level = self.open_level
        if both in self.equal:
            kind, level = "equal", self.equal[both]
        elif both in self.different:
            kind, level = "better" if estimate.mean < 0 else "worse", self.different[both]
        found = estimate.ratio(level)
        return Verdict(
            kind=kind,
            ratio=found.value,
            low=found.low,
            high=found.high,
            rounds=found.rounds,
            rounds_still_needed=self._still_needed(estimate) if kind == "undecided" else 0,
            delta_used=self.delta,
            a=pair[0],
            b=pair[1],
            error=level,
        )

    def _still_needed(self, estimate: LogRatio) -> int:
        """Return how many more rounds narrow the interval enough if mean and variance stay as they are."""
        distance = max(log1p(self.delta) - abs(estimate.mean), abs(estimate.mean))
        scatter = estimate.standard_error * sqrt(estimate.rounds)

        def rounds_at(more: int) -> float:
            freedom = estimate.degrees_of_freedom + more
            return (student_quantile(1 - self.open_level / 2, freedom) * scatter / distance) ** 2

        # The quantile falls as rounds are added, so the number computed with the present quantile is an upper bound.
        most = max(1, ceil(rounds_at(0)) - estimate.rounds)
        more = 1 + bisect_left(range(1, most), True, key=lambda m: rounds_at(m) <= estimate.rounds + m)
        return max(more, self.plan.least_rounds - estimate.rounds)


def holm_levels(p_values: Mapping[frozenset[str], float], error: float, family: int) -> dict[frozenset[str], float]:
    """Return pair -> level at which Holm's step-down procedure rejects it; pairs not rejected are left out.

    `family` counts all planned hypotheses, including those without data. Source: Holm 1979, "A simple sequentially
    rejective multiple test procedure".
    """
    rejected: dict[frozenset[str], float] = {}
    for pair in sorted(p_values, key=lambda pair: (p_values[pair], sorted(pair))):
        level = error / (family - len(rejected))
        if p_values[pair] > level:
            break
        rejected[pair] = level
    return rejected


def feasible_delta(plan: DecisionPlan, noise: NoiseFloor) -> float:
    """Return the plan's delta, or 1.4 s_d0 if the machine is too noisy for the plan's delta."""
    return max(plan.delta, DELTA_OVER_NOISE * noise.s_d0)
