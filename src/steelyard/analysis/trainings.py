"""The trainings of contenders over all seeds of a run: which comparisons belong together, and the basis of intervals."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from steelyard.results import learning
from steelyard.statistics.curves import LEAST_TRAININGS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from steelyard.analysis.model import Comparison
    from steelyard.results.learning import Course

ONE_SEED = (
    "All processes have one seed: they repeat one training, and differ by rounding alone. There is no interval across trainings; "
    "for one, train with several seeds: `--seed 1,2,3,4,5,6`."
)
SEEDS = "Independent trainings: {count}, one for each seed{rounds}."
TOO_FEW = " A band needs {least} of them."


@dataclass(frozen=True)
class Line:
    """The trainings of one contender: {seed: its rounds}. `name`: its title as it stands in a sentence.

    `otherwise`: that it computes something else on purpose, or makes a mistake on purpose; empty where it does neither.
    """

    variant: str
    title: str
    trainings: dict[int, list[Course]] = field(default_factory=dict)
    name: str = ""
    otherwise: str = ""

    @property
    def courses(self) -> list[Course]:
        """All processes."""
        return [course for rounds in self.trainings.values() for course in rounds]


def of_all_seeds(comparison: Comparison, among: Sequence[Comparison]) -> list[Comparison]:
    """Return the comparisons that differ from one in their seed alone, itself included; none unless it is their first."""
    found = same_but_seed(comparison, among)
    return found if found[0] is comparison else []


def same_but_seed(comparison: Comparison, among: Sequence[Comparison]) -> list[Comparison]:
    """Return the comparisons that differ from one in their seed alone, itself included."""
    cases = _without_seed(comparison)
    return [each for each in among if _without_seed(each) == cases]


def _without_seed(comparison: Comparison) -> frozenset[str]:
    return frozenset(repr(replace(each.case, seed=0, inputs="")) for each in comparison.contenders)


def lines(comparisons: Sequence[Comparison]) -> list[Line]:
    """Return the contenders of comparisons that differ in their seed alone, with their trainings of at least two epochs."""
    by_variant: dict[str, Line] = {}
    for contender in (contender for comparison in comparisons for contender in comparison.contenders):
        new = Line(contender.variant, contender.curve, {}, contender.in_text, contender.proof.on_purpose)
        line = by_variant.setdefault(contender.variant, new)
        if trained := learning.courses(contender.trials):
            line.trainings.setdefault(contender.case.seed, []).extend(trained)
    return [line for line in by_variant.values() if min((len(course.epochs) for course in line.courses), default=0) > 1]


def of_variant(variant: str, comparisons: Sequence[Comparison]) -> dict[int, list[Course]]:
    """Return {seed: its rounds} of one contender, from comparisons that differ in their seed alone."""
    found: dict[int, list[Course]] = {}
    for contender in (each for comparison in comparisons for each in comparison.contenders if each.variant == variant):
        if trained := learning.courses(contender.trials):
            found.setdefault(contender.case.seed, []).extend(trained)
    return found


def basis(shown: Sequence[Line]) -> str:
    """Return on how many independent trainings the intervals of contenders rest, in one to two sentences."""
    counts = sorted({len(line.trainings) for line in shown})
    if counts[-1] == 1:
        return ONE_SEED
    rounds = {len(each) for line in shown for each in line.trainings.values()}
    repeated = f"; {max(rounds)} rounds of a seed count as one" if max(rounds) > 1 else ""
    count = str(counts[0]) if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"
    few = TOO_FEW.format(least=LEAST_TRAININGS) if counts[0] < LEAST_TRAININGS else ""
    return SEEDS.format(count=count, rounds=repeated) + few
