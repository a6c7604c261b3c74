"""How many processes, warm-ups and counted steps: the sequential protocol, and the fixed ones of published comparisons."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from steelyard.errors import UserError, nearest
from steelyard_worker.protocol import Length, Schedule

if TYPE_CHECKING:
    from steelyard.statistics.decision import DecisionPlan


@dataclass(frozen=True)
class Protocol:
    """`rounds_min..rounds_max` processes per framework; a sequential protocol stops once every pair is decided."""

    name: str
    summary: str
    schedule: Schedule
    rounds_min: int
    rounds_max: int
    sequential: bool
    aggregate: str = "mean step time of the counted blocks"

    def decision(self, delta: float) -> DecisionPlan:
        """Return how verdicts are drawn from the rounds; one look after a fixed number of them needs at least two."""
        from steelyard.statistics.decision import DecisionPlan

        if not self.sequential:
            return DecisionPlan.single_look(max(2, self.rounds_max), delta)
        least = max(2, self.rounds_min)
        error = DecisionPlan.error if least > 2 else ERROR_FROM_ROUND_2
        return DecisionPlan(delta=delta, error=error, least_rounds=least, most_rounds=max(least, self.rounds_max))


# Looking more often than this would call differences too easily; see statistics.verdicts.DecisionPlan.
MOST_ROUNDS = 12
ERROR_FROM_ROUND_2 = 0.011

KNOWN = {
    "sequential": "Interleaved rounds of fresh processes until every pair is decided (3 to 12 rounds)",
    "fixed:WARMUP+COUNTED": "A fixed number of steps on a cached synthetic batch, e.g. fixed:10+200 (Dai et al. 2022)",
    "second-epoch": "The second pass over the training data, for inputs of varying length (Dai et al. 2022)",
    "epochs:N-first": "N epochs without the first, e.g. epochs:20-first (Borealis AI 2018) or epochs:200-first (Tian)",
}


def protocol(name: str, rounds: tuple[int, int] | None = None) -> Protocol:
    """Return a protocol by name; `rounds` replaces (at least, at most)."""
    found = _by_name(name)
    low, high = rounds or (found.rounds_min, found.rounds_max)
    if low < 1 or high < low:
        raise UserError(f"Rounds must be at least 1 and not fall: got {low} to {high}.")
    if found.sequential and high > MOST_ROUNDS:
        raise UserError(
            f"The error of a sequential decision is calibrated for at most {MOST_ROUNDS} rounds, not {high}."
        )
    return replace(found, rounds_min=low, rounds_max=high)


def _by_name(name: str) -> Protocol:
    if name == "sequential":
        return Protocol(name, KNOWN[name], Schedule(), 3, 12, sequential=True)
    if match := re.fullmatch(r"fixed:(\d+)\+(\d+)", name):
        warmup, counted = map(int, match.groups())
        schedule = Schedule(("cached",), Length("steps", warmup), Length("steps", max(1, counted)))
        return Protocol(name, KNOWN["fixed:WARMUP+COUNTED"], schedule, 1, 1, sequential=False)
    if name == "second-epoch":
        schedule = Schedule(("pipeline",), Length("epochs", 1), Length("epochs", 1))
        return Protocol(name, KNOWN[name], schedule, 1, 1, sequential=False, aggregate="the second epoch")
    if (match := re.fullmatch(r"epochs:(\d+)-first", name)) and int(match[1]) >= 2:
        schedule = Schedule(("pipeline",), Length("epochs", 1), Length("epochs", int(match[1]) - 1))
        aggregate = f"mean of epochs 2 to {match[1]}"
        return Protocol(name, KNOWN["epochs:N-first"], schedule, 1, 1, sequential=False, aggregate=aggregate)
    raise UserError(f"There is no protocol '{name}'.{nearest(name, list(KNOWN))}")
