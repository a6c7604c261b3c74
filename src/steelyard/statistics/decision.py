"""The sequential rule: rounds of frameworks in, a ranking with verdicts out, and who must run again."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import combinations
from math import fsum

from steelyard.statistics.calibration import NoiseFloor
from steelyard.statistics.intervals import LogRatio, Rounds, estimate_log_ratio, paired_log_ratios
from steelyard.statistics.verdicts import DecisionPlan, Judge, Pair, Verdict, feasible_delta

__all__ = ["DecisionPlan", "Ranking", "Verdict", "decide", "rounds_wanted"]


@dataclass(frozen=True)
class Ranking:
    """Where all frameworks of a comparison stand after the rounds so far."""

    order: tuple[str, ...]
    """Fastest first, as observed; frameworks without a finished round come last."""
    leader: str | None
    """None before the first round."""
    verdicts: tuple[Verdict, ...]
    """Every pair with a common round, the one ahead in `order` as A."""
    still_undecided: frozenset[str]
    """Those whose comparison with the leader is open."""
    rounds_run: int
    """Different rounds in which anybody finished."""
    delta_used: float
    plan: DecisionPlan
    noise: NoiseFloor

    @property
    def delta_widened(self) -> bool:
        """The machine is too noisy for the plan's delta, so a wider one was used."""
        return self.delta_used > self.plan.delta

    def between(self, a: str, b: str) -> Verdict | None:
        """Return the verdict of `a` against `b`; None when they share no round."""
        for verdict in self.verdicts:
            if (verdict.a, verdict.b) == (a, b):
                return verdict
            if (verdict.a, verdict.b) == (b, a):
                return verdict.flipped()
        return None


def decide(rounds: Mapping[str, Rounds], noise: NoiseFloor, plan: DecisionPlan | None = None) -> Ranking:
    """Judge every pair on the rounds it shares, and say whose comparison with the leader is open.

    `rounds`: framework -> {round number: location in ns per step}; a framework may lack rounds it failed in,
    and a framework that has none yet still takes part. Complete randomised blocks with elimination: a
    framework decided against the leader stops running, and its pairs rest on the rounds they have.

    The error is shared over all k(k-1)/2 pairs by Holm's procedure, once for differences and once for
    equalities. Sharing it over the k-1 comparisons with the leader alone would not do, as the leader is
    picked by the same data: with five equal frameworks that calls a difference in 9 % of families, Holm over
    all pairs in 4 % (simulated, all looks), and no later, for its steps give the last open pair the
    whole error. The procedure protects the calls; the intervals are each drawn at their own step's level.
    """
    plan = plan or DecisionPlan()
    delta = feasible_delta(plan, noise)
    estimates = _estimates(rounds, noise)
    order = _order(rounds, estimates)
    judge = Judge.of(estimates, len(rounds), delta, plan)
    leader = order[0] if order and rounds[order[0]] else None
    verdicts = [judge.verdict((a, b)) for a, b in combinations(order, 2) if (a, b) in estimates]
    settled = {v.b for v in verdicts if v.a == leader and v.kind != "undecided"}
    return Ranking(
        order=order,
        leader=leader,
        verdicts=tuple(verdicts),
        still_undecided=frozenset(order) - settled - {leader},
        rounds_run=len({number for finished in rounds.values() for number in finished}),
        delta_used=delta,
        plan=plan,
        noise=noise,
    )


def rounds_wanted(ranking: Ranking) -> frozenset[str]:
    """Return who must run in the next round: nobody when all is decided or the plan's rounds are used up."""
    if ranking.rounds_run < ranking.plan.least_rounds:
        return frozenset(ranking.order)
    if ranking.rounds_run >= ranking.plan.most_rounds or not ranking.still_undecided:
        return frozenset()
    return ranking.still_undecided | {ranking.leader} if ranking.leader else ranking.still_undecided


def _estimates(rounds: Mapping[str, Rounds], noise: NoiseFloor) -> dict[Pair, LogRatio]:
    """Return what is known of each pair that shares a round, both ways round."""
    found: dict[Pair, LogRatio] = {}
    for a, b in combinations(rounds, 2):
        estimate = estimate_log_ratio(paired_log_ratios(rounds[a], rounds[b]), noise)
        if estimate:
            found[a, b] = estimate
            found[b, a] = replace(estimate, mean=-estimate.mean)
    return found


def _order(rounds: Mapping[str, Rounds], estimates: Mapping[Pair, LogRatio]) -> tuple[str, ...]:
    """Order by pairs won, not by mean time: who ran in different rounds met different conditions."""

    def place(key: str) -> tuple[bool, int, float, str]:
        finished = rounds[key]
        won = sum(estimates[key, other].mean < 0 for other in rounds if (key, other) in estimates)
        mean = fsum(finished.values()) / len(finished) if finished else 0.0
        return (not finished, -won, mean, key)

    return tuple(sorted(rounds, key=place))
