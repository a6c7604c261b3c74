"""The plan of a decision: its error, the rounds after which it looks, and the pairs that matter most."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from steelyard.statistics.pair_evidence import Floats, Integers

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
        is_planned = np.array([frozenset(pair) in self.planned for pair in pairs_of(names)], dtype=bool)
        pairs, planned = len(is_planned), int(is_planned.sum())
        if not 0 < planned < pairs:
            return np.full(pairs, 1.0 / max(1, pairs))
        share = max(PLANNED_SHARE, planned / pairs)
        return np.where(is_planned, share / planned, (1 - share) / (pairs - planned))


def pairs_of(names: tuple[str, ...]) -> list[tuple[str, str]]:
    """Return all pairs of contenders, in the order of `pair_indices`."""
    return [(first, second) for place, first in enumerate(names) for second in names[place + 1 :]]
