"""The sequential decision rule: values per round -> a ranking with verdicts, and which contenders need more rounds.

The rule applies to any positive quantity of which less is better (time per step, peak memory). For a quantity of which
more is better (throughput), pass reciprocals: 1 / ratio is then the factor by which A has more.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from steelyard.statistics.decision_plan import DecisionPlan
from steelyard.statistics.intervals import Rounds, logs
from steelyard.statistics.looks import look
from steelyard.statistics.verdicts import Kind, Verdict, verdicts

__all__ = ["DecisionPlan", "Ranking", "Verdict", "decide", "rounds_needed", "rounds_wanted"]


@dataclass(frozen=True)
class Ranking:
    """The state of a comparison after the rounds so far."""

    order: tuple[str, ...]
    """Best (smallest value) first, as observed; contenders without a finished round come last."""
    leader: str | None
    """The first in `order`; None before the first round."""
    verdicts: tuple[Verdict, ...]
    """Every pair with a common round; A is the one that comes first in `order`."""
    still_undecided: frozenset[str]
    """Contenders whose comparison with the leader is undecided."""
    rounds_run: int
    """Number of different rounds that at least one contender finished."""
    delta_used: float
    """The plan's delta, or 1.4 times the scatter if that is larger."""
    scatter: float
    """Standard deviation of a round's log ratio, the median over all pairs; 0 before the second round."""
    plan: DecisionPlan
    second: str | None = None
    """If the leader is retired, the first in `order` that is not; otherwise None."""
    undecided_with_second: frozenset[str] = frozenset()
    """Contenders that are not retired, whose comparison with `second` is undecided."""

    @property
    def beyond_plan(self) -> bool:
        """Whether the margin is wider than the plan's, because ratios scatter; see `Verdict.beyond_plan`."""
        return self.delta_used > self.plan.delta

    def between(self, a: str, b: str) -> Verdict | None:
        """Return the verdict of `a` against `b`; None if they share no round."""
        if turned := self._by_pair.get((b, a)):
            return turned.flipped()
        return self._by_pair.get((a, b))

    @cached_property
    def _by_pair(self) -> dict[tuple[str, str], Verdict]:
        return {(verdict.a, verdict.b): verdict for verdict in self.verdicts}


def decide(rounds: Mapping[str, Rounds], plan: DecisionPlan | None = None) -> Ranking:
    """Judge every pair on the rounds it shares, and list the contenders still undecided against the leader.

    `rounds`: contender -> {round number: positive value, for example nanoseconds per step}. A contender may lack
    rounds in which it failed; one without any round is still counted. The design is complete randomised blocks with
    elimination: a contender that is decided against the leader stops running, and its pairs are judged on the rounds that
    they have.

    The error is shared over all k(k-1)/2 pairs by Holm's procedure, once for differences and once for equalities; pairs that the
    plan names have at least half of it.
    Sharing it over the k-1 comparisons with the leader is not enough, because the same data choose the leader. The
    procedure controls the error of the verdicts; each interval is computed at the level of its own step.
    """
    plan = plan or DecisionPlan()
    names = tuple(sorted(rounds))
    if not names:
        return Ranking((), None, (), frozenset(), 0, plan.delta, 0.0, plan)
    state = look(table([rounds[name] for name in names]), plan, plan.weights(names))
    order = tuple(names[place] for place in state.order)
    leader = order[0] if rounds[order[0]] else None
    found = _in_order(verdicts(state, names, plan), order)
    others = [name for name in order if name not in plan.retired and rounds[name]] if leader in plan.retired else []
    second = others[0] if others else None
    return Ranking(
        order=order,
        leader=leader,
        verdicts=found,
        second=second,
        undecided_with_second=frozenset(
            name for name in others[1:] if _kind(found, second, name) in ("undecided", None)
        ),
        still_undecided=frozenset(name for name, is_open in zip(names, state.undecided, strict=True) if is_open)
        if leader
        else frozenset(names),
        rounds_run=len({number for finished in rounds.values() for number in finished}),
        delta_used=float(state.margin),
        scatter=float(state.scatter),
        plan=plan,
    )


def rounds_wanted(ranking: Ranking) -> frozenset[str]:
    """Return the contenders of the next round; empty if all is decided or the plan's rounds are used up."""
    if ranking.rounds_run < ranking.plan.least_rounds:
        return frozenset(ranking.order)
    if ranking.rounds_run >= ranking.plan.most_rounds:
        return frozenset()
    wanted: frozenset[str] = frozenset()
    for best, undecided in ((ranking.leader, ranking.still_undecided), (ranking.second, ranking.undecided_with_second)):
        wanted |= undecided | {best} if best and undecided else undecided
    return wanted


def rounds_needed(ranking: Ranking) -> int:
    """Return about how many further rounds the comparisons with the leader and with the best maintained contender need.

    At most as many as the plan allows. Before the least number of rounds, only these are known to be needed.
    """
    run, plan = ranking.rounds_run, ranking.plan
    if run < plan.least_rounds:
        return plan.least_rounds - run
    undecided = [each for each in ranking.verdicts if ranking.leader in (each.a, each.b)]
    undecided += [
        each
        for each in ranking.verdicts
        if ranking.second in (each.a, each.b) and ranking.undecided_with_second & {each.a, each.b}
    ]
    needed = max((each.rounds_still_needed for each in undecided), default=0)
    return max(0, min(needed, plan.most_rounds - run))


def table(rounds: list[Rounds]) -> NDArray[np.float64]:
    """Return the logarithms as an array of contenders and rounds, NaN where a contender did not finish a round."""
    numbers = sorted({number for finished in rounds for number in finished})
    table = np.full((len(rounds), len(numbers)), np.nan)
    for row, finished in zip(table, rounds, strict=True):
        row[[numbers.index(number) for number in finished]] = logs(list(finished.values()))
    return table


def _kind(found: tuple[Verdict, ...], a: str | None, b: str) -> Kind | None:
    return next((each.kind for each in found if {each.a, each.b} == {a, b}), None)


def _in_order(found: list[Verdict], order: tuple[str, ...]) -> tuple[Verdict, ...]:
    place = {name: number for number, name in enumerate(order)}
    turned = [verdict if place[verdict.a] < place[verdict.b] else verdict.flipped() for verdict in found]
    return tuple(sorted(turned, key=lambda verdict: (place[verdict.a], place[verdict.b])))
