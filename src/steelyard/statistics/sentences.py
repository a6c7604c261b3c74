"""Verdicts as words a person can act on."""

from collections.abc import Mapping
from itertools import pairwise

from steelyard.statistics.decision import Ranking, Verdict

Titles = Mapping[str, str]
"""Framework key -> the name people know it by."""


def verdict_sentence(verdict: Verdict, titles: Titles) -> str:
    """Say one verdict, the faster one first."""
    if verdict.kind == "slower":
        return verdict_sentence(verdict.flipped(), titles)
    a, b = titles[verdict.a], titles[verdict.b]
    if verdict.kind == "equal":
        return f"{a} and {b} are practically the same (within {percent(verdict.delta_used)})"
    if verdict.kind == "undecided":
        return f"{a} and {b}: undecided, {_more_rounds(verdict.rounds_still_needed)}"
    best, low, high = 1 / verdict.ratio, 1 / verdict.high, 1 / verdict.low
    digits = factor_digits(low)
    return f"{a} is {best:.{digits}f}x [{low:.{digits}f}, {high:.{digits}f}] faster than {b}"


def ranking_sentence(ranking: Ranking, titles: Titles) -> str:
    """Say a whole ranking, fastest first: each against the one before it, then what is open.

    Neighbours that are not decided between themselves are told by their distance from the leader instead.
    """
    said = [verdict_sentence(verdict, titles) for verdict in _chain(ranking)]
    said += [_open_sentence(ranking, key, titles) for key in ranking.order if key in ranking.still_undecided]
    return "; ".join(said)


def percent(fraction: float) -> str:
    """Return `2 %` for 0.02 and `2.8 %` for 0.028."""
    return f"{fraction * 100:.2g} %"


def factor_digits(low: float) -> int:
    """Return the decimals a factor above 1 needs: two, more where it would read `1.00`, fewer when big."""
    if low >= 100:
        return 0
    if low >= 10:
        return 1
    digits = 2
    while digits < 5 and round(low, digits) <= 1:
        digits += 1
    return digits


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


def _open_sentence(ranking: Ranking, key: str, titles: Titles) -> str:
    verdict = ranking.between(ranking.leader, key) if ranking.leader else None
    if verdict is None:
        return f"{titles[key]}: not measured yet"
    spent = ranking.rounds_run >= ranking.plan.most_rounds
    after = f" after {ranking.rounds_run} rounds" if spent else ""
    who = f"{titles[verdict.a]} and {titles[key]}" if len(ranking.order) == 2 else titles[key]
    return f"{who}: undecided{after}, {_more_rounds(verdict.rounds_still_needed)}"


def _more_rounds(count: int) -> str:
    return f"about {count} more {'round' if count == 1 else 'rounds'}"
