"""The answer of a ranking to somebody who has to choose: who may be the best, how much they differ, and who is ruled out."""

from collections.abc import Collection
from dataclasses import dataclass
from math import inf

from steelyard.statistics.decision import Ranking, Verdict

WIDEST = 3.0
"""If the upper end of an interval is more than this many times the lower end, there were not enough rounds."""


@dataclass(frozen=True)
class Answer:
    """Keys of contenders, best first as observed. Each field is right with the probability of the ranking's plan (95 %)."""

    candidates: tuple[str, ...]
    """The contenders that are not shown to be worse than any other. The best one is among them."""
    compared: tuple[str, ...]
    """The candidates whose intervals with each other are narrow enough for `within`; the first candidate is always there."""
    within: float
    """No two of `compared` differ by more than this factor; infinite if there is only one."""
    worse: tuple[tuple[str, float], ...]
    """The others: contender -> the least factor, 1 or more, by which it is worse than the best."""


def answer(ranking: Ranking, among: Collection[str] | None = None) -> Answer:
    """Return the answer of a ranking; with `among`, as if only these contenders had been measured.

    That no candidate is missing follows from the verdicts, of which none is wrong. The factors are ends of the joint
    intervals. The best contender is at least as good as each of the others, so a contender is worse than the best by at
    least as much as it is worse than any one of them: the largest of these lower ends holds, whoever is the best.
    """
    keys = [key for key in ranking.order if among is None or key in among]
    measured = [key for key in keys if any(key in (each.a, each.b) for each in ranking.verdicts)]
    against = {key: [found for other in measured if (found := ranking.between(key, other))] for key in measured}
    # Contradictory verdicts (A < B < C < A) would exclude everyone; fall back to the first in the order.
    candidates = [key for key in measured if all(each.kind != "worse" for each in against[key])] or measured[:1]
    compared: list[str] = []
    for key in candidates:
        pairs = [ranking.between(other, key) for other in compared]
        if all(pair and (pair.kind == "equal" or not is_wide(pair.low, pair.high)) for pair in pairs):
            compared.append(key)
    factors = [largest_factor(pair) for pair in ranking.verdicts if pair.a in compared and pair.b in compared]
    worse = [(key, max(1.0, *(each.joint_low for each in against[key]))) for key in measured if key not in candidates]
    return Answer(tuple(candidates), tuple(compared), max(factors, default=inf), tuple(worse))


def largest_factor(verdict: Verdict) -> float:
    """Return the largest possible factor between two contenders, whichever is better."""
    factor = max(verdict.joint_high, 1 / verdict.joint_low if verdict.joint_low else inf)
    return min(factor, 1 + verdict.delta_used) if verdict.kind == "equal" else factor


def is_wide(low: float, high: float) -> bool:
    """Return whether an interval is too wide to be useful, so that more rounds are needed."""
    return high > WIDEST * low
