"""Verdicts and rankings as sentences."""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise

from steelyard.statistics.decision import Ranking, Verdict

Titles = Mapping[str, str]
"""Contender key -> title."""


@dataclass(frozen=True)
class Wording:
    """The words for the compared quantity; the default is time per step.

    For peak memory, for example, `better` is "{a} uses {factor} less memory than {b}" and `best` is "{who} uses the least
    memory".
    """

    better: str = "{a} is {factor} faster than {b}"
    ahead: str = "{who} was faster on average"
    """The better one of two, if the difference is undecided."""
    ahead_of_all: str = "{who} was fastest on average"
    """The best one of several, if that is undecided."""
    best: str = "{who} is the fastest"
    best_together: str = "{who} are the fastest, practically the same"


TIME_PER_STEP = Wording()


def verdict_sentence(verdict: Verdict, titles: Titles, wording: Wording = TIME_PER_STEP) -> str:
    """Return one verdict as a sentence without a full stop, the better contender first."""
    if verdict.kind == "worse" or (verdict.kind == "undecided" and verdict.ratio > 1):
        return verdict_sentence(verdict.flipped(), titles, wording)
    a, b = titles[verdict.a], titles[verdict.b]
    if verdict.kind == "equal":
        return f"{a} and {b} are practically the same (within {percent(verdict.delta_used)})"
    if verdict.kind == "undecided":
        ahead = "" if _is_tie(verdict) else f" ({wording.ahead.format(who=a)})"
        return f"{a} and {b}: too close to call{ahead}, {_more_rounds(verdict.rounds_still_needed)}"
    best, low, high = 1 / verdict.ratio, 1 / verdict.high, 1 / verdict.low
    digits = factor_digits(low)
    factor = f"{best:.{digits}f}x [{low:.{digits}f}, {high:.{digits}f}]"
    return wording.better.format(a=a, b=b, factor=factor)


def ranking_sentence(ranking: Ranking, titles: Titles, wording: Wording = TIME_PER_STEP) -> str:
    """Return a whole ranking as clauses separated by semicolons: decided contenders, best first, then undecided ones.

    Each decided contender is compared with the one before it, or with the leader if that comparison is undecided.
    """
    clauses = [verdict_sentence(verdict, titles, wording) for verdict in _chain(ranking)]
    clauses += [_undecided(ranking, key, titles) for key in ranking.order if key in ranking.still_undecided]
    return "; ".join(clauses)


def headline(ranking: Ranking, titles: Titles, wording: Wording = TIME_PER_STEP) -> str:
    """Return the best contender, or those that may be the best, as one or two sentences.

    Raises ValueError if no contender was compared with the leader.
    """
    against = {key: ranking.between(ranking.leader, key) for key in ranking.order} if ranking.leader else {}
    verdicts = [verdict for verdict in against.values() if verdict]
    if not ranking.leader or not verdicts:
        raise ValueError("A headline needs a contender that was compared with the leader.")
    rivals = [verdict for verdict in verdicts if verdict.kind in ("equal", "undecided")]
    who = listed([titles[ranking.leader], *(titles[verdict.b] for verdict in rivals)])
    if any(verdict.kind == "undecided" for verdict in rivals):
        ahead = (wording.ahead if len(rivals) == 1 else wording.ahead_of_all).format(who=titles[ranking.leader])
        return f"Too close to call: {who}." + ("" if any(map(_is_tie, rivals)) else f" {ahead}.")
    best = (wording.best_together if rivals else wording.best).format(who=who)
    return f"{best}." if len(verdicts) == len(ranking.order) - 1 else f"So far: {best}."


def percent(fraction: float) -> str:
    """Return `2 %` for 0.02, `2.8 %` for 0.028 and `180 %` for 1.8."""
    return f"{fraction:.0%}".replace("%", " %") if abs(fraction) >= 0.995 else f"{fraction * 100:.2g} %"


def listed(names: list[str]) -> str:
    """Return `a, b and c`."""
    return " and ".join([", ".join(names[:-1]), names[-1]]) if len(names) > 1 else "".join(names)


def factor_digits(low: float) -> int:
    """Return the decimals for a factor above 1 whose interval begins at `low`: two, more if `low` would be shown as
    `1.00`, fewer for large factors.
    """
    if low >= 100:
        return 0
    if low >= 10:
        return 1
    digits = 2
    while digits < 5 and round(low, digits) <= 1:
        digits += 1
    return digits


def _is_tie(verdict: Verdict) -> bool:
    """Return whether the observed ratio is 1.000, so that neither may be called ahead."""
    return round(verdict.ratio, 3) == 1


def _chain(ranking: Ranking) -> list[Verdict]:
    settled = [key for key in ranking.order if key not in ranking.still_undecided]
    chain = []
    for before, key in pairwise(settled):
        verdict = ranking.between(before, key)
        if ranking.leader and (verdict is None or verdict.kind == "undecided"):
            verdict = ranking.between(ranking.leader, key)
        if verdict:
            chain.append(verdict)
    return chain


def _undecided(ranking: Ranking, key: str, titles: Titles) -> str:
    verdict = ranking.between(ranking.leader, key) if ranking.leader else None
    if verdict is None:
        return f"{titles[key]}: not measured yet"
    pair = f"{titles[verdict.a]} and {titles[key]}"
    if ranking.rounds_run >= ranking.plan.most_rounds:
        return f"{pair}: undecided after {ranking.rounds_run} rounds"
    return f"{pair}: undecided, {_more_rounds(verdict.rounds_still_needed)}"


def _more_rounds(count: int) -> str:
    return f"about {count} more {'round' if count == 1 else 'rounds'} needed"
