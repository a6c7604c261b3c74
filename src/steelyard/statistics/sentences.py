"""Verdicts and rankings as sentences."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from itertools import pairwise
from math import ceil, floor, inf

from steelyard.statistics.answer import Answer, answer, is_wide, largest_factor
from steelyard.statistics.decision import Ranking, Verdict

Titles = Mapping[str, str]
"""Contender key -> title."""
NOT_ENOUGH = "not enough rounds"
"""The text in place of an interval whose ends differ by more than a factor of 3."""

LEAST_FACTOR = 1.005
"""If a contender is worse than the best by possibly less than this factor, the sentence names no factor."""

MOST_NAMED = 4
"""A sentence names up to this many contenders. Of more it gives the number; the table has all."""


@dataclass(frozen=True)
class Wording:
    """The words for the compared quantity; the default is time per step.

    For peak memory, for example, `better` is "{a} uses {factor} less memory than {b}" and `best` is "{who} uses the least
    memory".
    """

    better: str = "{a} is {factor} faster than {b}"
    ahead: str = "{who} was faster on average"
    """The clause for the apparently better of two contenders whose difference is undecided."""
    best: str = "{who} is the fastest"
    best_together: str = "{who} are the fastest"
    """The clause for contenders that are best and shown to be within a margin of each other."""
    best_of: str = "The fastest is {who}"
    """The clause for contenders that may be the best, as a list with "or"."""
    worse: str = "is {factors} slower"
    """The words after the first name in "A is at least 1.6x and B at least 2.5x slower"."""


TIME_PER_STEP = Wording()


def verdict_sentence(verdict: Verdict, titles: Titles, wording: Wording = TIME_PER_STEP) -> str:
    """Return one verdict as a sentence without a full stop, the better contender first."""
    if verdict.kind == "worse" or (verdict.kind == "undecided" and verdict.ratio > 1):
        return verdict_sentence(verdict.flipped(), titles, wording)
    a, b = titles[verdict.a], titles[verdict.b]
    if verdict.kind == "equal":
        return f"{a} and {b} are {together(verdict.beyond_plan)} (within {percent(verdict.delta_used)})"
    if verdict.kind == "undecided":
        ahead = "" if _is_tie(verdict) else f" ({wording.ahead.format(who=a)})"
        each_other = "" if is_wide(verdict.low, verdict.high) else " of each other"
        return f"{a} and {b}: too close to call{ahead}, {_how_close(verdict)}{each_other}"
    best, low, high = 1 / verdict.ratio, 1 / verdict.high, 1 / verdict.low
    digits = factor_digits(low)
    if is_wide(low, high):
        factor = f"more than {_at_least(low)}"
        return f"{wording.better.format(a=a, b=b, factor=factor)} ({NOT_ENOUGH} to say how much)"
    factor = f"{best:.{digits}f}x [{low:.{digits}f}, {high:.{digits}f}]"
    return wording.better.format(a=a, b=b, factor=factor)


def together(beyond_plan: bool) -> str:
    """Return the words for two contenders within a margin of each other: "the same" only if the margin is the plan's."""
    return "not told apart" if beyond_plan else "practically the same"


def ranking_sentence(ranking: Ranking, titles: Titles, wording: Wording = TIME_PER_STEP) -> str:
    """Return a whole ranking as clauses separated by semicolons: decided contenders, best first, then undecided ones.

    Every decided contender is compared with its predecessor, or with the leader if that comparison is undecided.
    """
    clauses = [verdict_sentence(verdict, titles, wording) for verdict in _chain(ranking)]
    pairs = {key: ranking.leader and ranking.between(ranking.leader, key) for key in ranking.order}
    still = {key: pair for key, pair in pairs.items() if key in ranking.still_undecided}
    missing = [f"{titles[key]}: not measured yet" for key, pair in still.items() if not pair]
    return "; ".join([*clauses, *_undecided([pair for pair in still.values() if pair], titles, wording), *missing])


def headline(
    ranking: Ranking, titles: Titles, wording: Wording = TIME_PER_STEP, maintained: Collection[str] | None = None
) -> str:
    """Return one to four sentences on the best contender, or on those that may be the best and those that are ruled out.

    `maintained`: the contenders that are still maintained; None: all of them. If the best is retired, they have a
    sentence of their own. Raises ValueError if no contender was compared with the leader.
    """
    if not ranking.leader or all(ranking.between(ranking.leader, key) is None for key in ranking.order):
        raise ValueError("A headline needs a contender that was compared with the leader.")
    found = answer(ranking)
    text = _best(ranking, found, titles, wording)
    measured = {key for verdict in ranking.verdicts for key in (verdict.a, verdict.b)}
    if len(measured) < len(ranking.order):
        text = f"So far: {text}"
    if maintained is not None and not set(found.candidates) & set(maintained) and measured & set(maintained):
        best = _best(ranking, answer(ranking, maintained), titles, wording)
        text += f" Of the maintained ones, {best[:1].lower() + best[1:] if best.startswith('The ') else best}"
    return text


def _best(ranking: Ranking, found: Answer, titles: Titles, wording: Wording) -> str:
    """Return an answer as sentences. If everything is decided, the verdicts say how much worse the others are."""
    first, *others = (titles[key] for key in found.candidates)
    rivals = [ranking.between(found.candidates[0], key) for key in found.candidates[1:]]
    if all(verdict and verdict.kind == "equal" for verdict in rivals):
        best = (wording.best_together if others else wording.best).format(who=listed([first, *others]))
        margin = f" (within {percent(ranking.delta_used)})" if ranking.beyond_plan else ""
        return f"{best}, {together(ranking.beyond_plan)}{margin}." if others else f"{best}."
    if len(found.candidates) > MOST_NAMED:
        who = wording.best_of.format(who=f"one of {len(found.candidates)} contenders")
        who += f", of which {first} was best on average"
    else:
        who = wording.best_of.format(who=listed([first, *others], "or"))
    return " ".join(filter(None, [f"{who}: {_spread(found, titles)}.", _ruled_out(found, titles, wording)]))


def _spread(found: Answer, titles: Titles) -> str:
    """Return how close the candidates are, if there were enough rounds."""
    rest = listed([titles[key] for key in found.candidates if key not in found.compared])
    if found.within == inf:
        return f"{NOT_ENOUGH} to say how much they differ"
    within = f"within {at_most(found.within)} of each other"
    if not rest:
        return f"they are {within}"
    if len(found.candidates) > MOST_NAMED:
        return f"{len(found.compared)} of them are {within}, {NOT_ENOUGH} for the others"
    return f"{listed([titles[key] for key in found.compared])} are {within}, {NOT_ENOUGH} for {rest}"


def _ruled_out(found: Answer, titles: Titles, wording: Wording) -> str:
    """Return by how much the other contenders are at least worse than the best; empty if there are no others."""
    if len(found.worse) > MOST_NAMED:
        return f"The {len(found.worse)} others are ruled out."
    known = [(titles[key], f"at least {_at_least(factor)}") for key, factor in found.worse if factor >= LEAST_FACTOR]
    unknown = [titles[key] for key, factor in found.worse if factor < LEAST_FACTOR]
    sentences = []
    if known:
        (first, factor), *others = known
        factors = listed([factor, *(" ".join(other) for other in others)])
        sentences = [f"{first} {wording.worse.format(factors=factors)}."]
    if unknown:
        sentences.append(f"{listed(unknown)} {'is' if len(unknown) == 1 else 'are'} ruled out.")
    return " ".join(sentences)


def at_most(factor: float) -> str:
    """Return `1.27x`, rounded up."""
    digits = factor_digits(factor)
    return f"{ceil(round(factor * 10**digits, 6)) / 10**digits:.{digits}f}x"


def _at_least(factor: float) -> str:
    """Return `1.27x`, rounded down; with more decimals where it would be shown as `1.00x`."""
    digits = factor_digits(factor)
    if 10**digits < factor * 10**digits < 10**digits + 1:
        digits += 1
    return f"{floor(round(factor * 10**digits, 6)) / 10**digits:.{digits}f}x"


def percent(fraction: float) -> str:
    """Return `2 %` for 0.02, `2.8 %` for 0.028 and `180 %` for 1.8."""
    return f"{fraction:.0%}".replace("%", " %") if abs(fraction) >= 0.995 else f"{fraction * 100:.2g} %"


def in_text(title: str, mark: str = "") -> str:
    """Return a title such as `PyTorch, lstm fused` as it is written in a sentence: `PyTorch (lstm fused)`.

    Otherwise commas within names would look like commas between names. `mark`: a further remark, such as `retired`.
    """
    framework, _, distinguishing = title.partition(", ")
    return with_remarks(framework, distinguishing, mark)


def with_remarks(name: str, *remarks: str) -> str:
    """Return a name with remarks in brackets, such as `PyTorch (lstm fused, retired)`; empty remarks are left out."""
    inside = ", ".join(filter(None, remarks))
    return f"{name} ({inside})" if inside else name


def listed(names: list[str], last: str = "and") -> str:
    """Return `a, b and c`; `last`: the word before the last one."""
    return f" {last} ".join([", ".join(names[:-1]), names[-1]]) if len(names) > 1 else "".join(names)


def some_others(names: list[str]) -> str:
    """Return the names as a list, or their number if they are too many for a sentence."""
    return listed(names) if len(names) <= MOST_NAMED else f"{len(names)} others"


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
    """Return whether the observed ratio is 1.000, so that neither contender may be called ahead."""
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


def _undecided(pairs: list[Verdict], titles: Titles, wording: Wording) -> list[str]:
    """Return clauses on the undecided comparisons with the leader."""
    if len(pairs) <= 1:
        return [verdict_sentence(pair, titles, wording) for pair in pairs]
    leader, wide = titles[pairs[0].a], [titles[pair.b] for pair in pairs if is_wide(pair.low, pair.high)]
    near = [pair for pair in pairs if not is_wide(pair.low, pair.high)]
    close = listed([f"{titles[pair.b]} ({_how_close(pair)})" for pair in near])
    if len(near) > MOST_NAMED:
        close = f"{len(near)} others ({_how_close(max(near, key=largest_factor))})"
    clauses = [f"{leader} is too close to call with {close}"] if near else []
    return clauses + ([f"{leader} cannot be compared with {some_others(wide)} yet ({NOT_ENOUGH})"] if wide else [])


def _how_close(verdict: Verdict) -> str:
    if is_wide(verdict.low, verdict.high):
        return NOT_ENOUGH
    return f"within {at_most(largest_factor(verdict))}"
