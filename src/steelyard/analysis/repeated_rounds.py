"""The effect of rounds that were repeated only because workers stood still: the verdicts with and without them."""

from collections.abc import Iterator
from dataclasses import dataclass

from steelyard.analysis.model import Comparison, Source
from steelyard.results.repeated import Repeated, as_if_not_repeated
from steelyard.statistics.decision import Ranking, decide
from steelyard.statistics.sentences import listed, together
from steelyard.statistics.verdicts import Verdict
from steelyard.wording.formatted import of_ratio

BEFORE = " Whether others had the processors was not asked then: a framework that waits by itself stands still as well."


@dataclass(frozen=True)
class Changed:
    """A pair whose verdict is another one if these rounds are not repeated, and the sentence with both ratios."""

    pair: str
    sentence: str


def by_contender(comparison: Comparison, repeated: tuple[Repeated, ...]) -> Iterator[tuple[str, str]]:
    """Yield each contender because of which rounds were repeated, with a sentence that has their number."""
    for contender in comparison.contenders:
        of_it = [each for each in repeated if contender.case.id in each.still]
        asked = all(each.kept_from for each in of_it)
        if of_it:
            verb = "was kept from computing" if asked else "stood still"
            yield contender.title, f"{_were(len(of_it))} repeated only because it {verb}.{'' if asked else BEFORE}"


def changed_verdicts(comparison: Comparison, source: Source, repeated: tuple[Repeated, ...]) -> Iterator[Changed]:
    """Yield the pairs whose verdict is another one if these rounds are not repeated."""
    ranking = comparison.rankings.get(comparison.primary)
    if not ranking or not repeated:
        return
    other = _not_repeated(comparison, source, repeated, ranking)
    titles = {each.case.id: each.title_in_text for each in comparison.contenders}
    who = listed([titles[key] for key in titles if any(key in each.still for each in repeated)]) or "a worker"
    for verdict in ranking.verdicts:
        then = other.between(verdict.a, verdict.b)
        if then and then.kind != verdict.kind:
            now, otherwise = (_said(each, source, titles) for each in (verdict, then))
            rounds = "the round" if len(repeated) == 1 else f"the {len(repeated)} rounds"
            was = "was" if len(repeated) == 1 else "were"
            yield Changed(
                f"{titles[verdict.a]} and {titles[verdict.b]}",
                f"{titles[verdict.a]} over {titles[verdict.b]} is {now} as the rounds count, and {otherwise} with {rounds} "
                f"that {was} repeated only because {who} stood still.",
            )


def _not_repeated(comparison: Comparison, source: Source, repeated: tuple[Repeated, ...], ranking: Ranking) -> Ranking:
    able = [each.case for each in comparison.contenders if each.case.id in ranking.order]
    results = as_if_not_repeated(source.results, repeated)
    return decide(results.costs(able, source.quantity, comparison.primary), ranking.plan)


def _said(verdict: Verdict, source: Source, titles: dict[str, str]) -> str:
    ratio = of_ratio(source.quantity.ratio(verdict))
    words = {
        "better": f"{titles[verdict.a]} is better",
        "worse": f"{titles[verdict.b]} is better",
        "equal": together(verdict.beyond_plan),
        "undecided": "undecided",
    }
    return f"{ratio.value} {ratio.interval} ({words[verdict.kind]})"


def _were(count: int) -> str:
    return "1 round was" if count == 1 else f"{count} rounds were"
