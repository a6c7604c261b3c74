"""The top of a page: the summary of a comparison, or of several that differ only in their seed."""

from collections.abc import Sequence
from dataclasses import dataclass

from steelyard.analysis import headlines, setting_effects, trainings
from steelyard.analysis.learning_curves import Learning, learning
from steelyard.analysis.model import Comparison
from steelyard.analysis.strategies import strategies

NOTHING = "Nothing was measured."
MOST_CLAUSES = 12
"""The most clauses that are shown at once: a person reads a dozen, and a study of links has thirty."""
FEW_CLAUSES = 3
"""The clauses below a drawing of the ratios, which shows most of what the others say."""
FURTHER = "More comparisons"


@dataclass(frozen=True)
class Summary:
    """The headlines of a comparison, what follows from them, and what to do next. `title` and `group` name the comparison."""

    title: str
    group: str
    headlines: list[str]
    clauses: list[str]
    advice: str


def of_comparison(comparison: Comparison, among: Sequence[Comparison]) -> Summary | None:
    """Return the summary of a comparison with its verdict and what else was found; None if that of its first seed covers it."""
    source = comparison.primary
    verdict: tuple[str, list[str], str] = (NOTHING, [], "")
    if source in comparison.rankings:
        verdict = headlines.headline(comparison, source), clauses(comparison, source), comparison.advice[source]
    trained = learning(trainings.of_all_seeds(comparison, among))
    return summary(
        comparison, among, trained, *verdict, [*_of_ranks(comparison), *setting_effects.in_short(comparison)]
    )


def summary(
    comparison: Comparison,
    among: Sequence[Comparison],
    trained: Learning | None,
    headline: str,
    clauses: list[str],
    advice: str,
    more: Sequence[str] = (),
) -> Summary | None:
    """Return the summary of a comparison; None if the summary of its first seed covers all of its seeds.

    If one process of every contender was measured with each of several seeds, no seed has a verdict, and the scores of the
    trainings of all seeds are reported once. `more`: sentences on strategies and settings. `headline`, `clauses` and `advice`
    are those of the verdict.
    """
    reached = [trained.sentence] if trained and trained.sentence else []
    otherwise = [*([trained.otherwise] if trained and trained.otherwise else []), *more]
    otherwise = [sentence.removesuffix(".") for sentence in otherwise]
    seeds = trainings.same_but_seed(comparison, among)
    if len(seeds) < 2 or not all(map(_is_one_process, seeds)):
        return Summary(comparison.title, comparison.group, [*reached, headline], otherwise + clauses, advice)
    if seeds[0] is not comparison:
        return None
    seed = comparison.contenders[0].case.seed
    title = comparison.title.replace(f", seed {seed}", f", {len(seeds)} seeds")
    return Summary(title, comparison.group.replace(f",seed={seed}", ""), reached or [headline], otherwise, "")


def _is_one_process(comparison: Comparison) -> bool:
    """Return whether there is no verdict because one process of every contender was measured."""
    source = comparison.primary
    return source in comparison.rankings and headlines.headline(comparison, source) == headlines.ONE_PROCESS


def clauses(comparison: Comparison, source: str) -> list[str]:
    """Return the verdict on one input as clauses without full stops."""
    text = headlines.below_headline(comparison, source)
    return [clause.rstrip(".") for clause in text.split("; ") if clause]


def _of_ranks(comparison: Comparison) -> list[str]:
    """Return what ranks bring in short, and a sentence for each that does not wait for the others."""
    spread = strategies(comparison)
    return [*spread.in_short, *spread.of_not_waiting] if spread else []
