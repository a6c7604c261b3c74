"""The top of a page: the summary of a comparison, or of several that differ only in their seed."""

from collections.abc import Sequence
from dataclasses import dataclass

from steelyard.analysis.headlines import ONE_PROCESS
from steelyard.analysis.headlines import headline as headline_of
from steelyard.analysis.learning_curves import Learning
from steelyard.analysis.model import Comparison
from steelyard.analysis.trainings import same_but_seed


@dataclass(frozen=True)
class Summary:
    """The headlines of a comparison, what follows from them, and what to do next. `title` and `group` name the comparison."""

    title: str
    group: str
    headlines: list[str]
    clauses: list[str]
    advice: str


def summary(
    comparison: Comparison,
    among: Sequence[Comparison],
    trained: Learning | None,
    headline: str,
    clauses: list[str],
    advice: str,
    ranks: Sequence[str] = (),
) -> Summary | None:
    """Return the summary of a comparison; None if the summary of its first seed covers all of its seeds.

    If one process of every contender was measured with each of several seeds, no seed has a verdict, and the scores of the
    trainings of all seeds are reported once. `ranks`: sentences on strategies. `headline`, `clauses` and `advice`
    are those of the verdict.
    """
    reached = [trained.sentence] if trained and trained.sentence else []
    otherwise = [*([trained.otherwise] if trained and trained.otherwise else []), *ranks]
    otherwise = [each.removesuffix(".") for each in otherwise]
    seeds = same_but_seed(comparison, among)
    if len(seeds) < 2 or any(
        each.primary not in each.rankings or headline_of(each, each.primary) != ONE_PROCESS for each in seeds
    ):
        return Summary(comparison.title, comparison.group, [*reached, headline], otherwise + clauses, advice)
    if seeds[0] is not comparison:
        return None
    seed = comparison.contenders[0].case.seed
    title = comparison.title.replace(f", seed {seed}", f", {len(seeds)} seeds")
    return Summary(title, comparison.group.replace(f",seed={seed}", ""), reached or [headline], otherwise, "")
