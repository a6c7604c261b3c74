"""The scores of trainings in groups that differ in their seed alone, for claims of documents on accuracy."""

from __future__ import annotations

from math import isnan
from statistics import fmean
from typing import TYPE_CHECKING

from steelyard.analysis import thresholds
from steelyard.results.learning import courses
from steelyard.statistics import metrics, scores

if TYPE_CHECKING:
    from collections.abc import Sequence

    from steelyard.analysis.model import Comparison, Contender
    from steelyard.results.learning import Course
    from steelyard.statistics.intervals import Ratio

LABELS = {
    scores.SCORE: "score on the test split after the last epoch",
    scores.BEST: "best score on the test split after any epoch",
    scores.CONVERGENCE: "score on the test split, mean over the epochs",
    scores.LOSS: "mean training loss of the last epoch",
}
NO_TRAINING = "It was not trained for whole epochs with an evaluation after each."


class OverSeeds:
    """The trainings of a comparison's contenders over all its seeds, in one quantity. `name`: of the score itself."""

    def __init__(self, quantity: str, same: Sequence[Comparison]) -> None:
        """`same`: comparisons that differ in their seed alone."""
        self._quantity, self.name = quantity, ""
        self._known: dict[str, dict[int, float]] = {}
        for comparison in same:
            for contender in comparison.contenders:
                self._add(contender)

    def _add(self, contender: Contender) -> None:
        """Add the mean over the processes of one seed: they start alike and differ in the order of rounding alone."""
        found = [value for course in courses(contender.trials) if (value := self._value(course)) is not None]
        values = self._known.setdefault(contender.variant, {})
        if found:
            values[contender.case.seed] = fmean(found)

    def _value(self, course: Course) -> float | None:
        if self._quantity == scores.LOSS:
            self.name = self.name or scores.LOSS
            return course.losses[-1]
        values = [each for each in course.scores.get(course.score, ()) if not isnan(each)]
        if not values:
            return None
        self.name = self.name or course.score
        best = max if metrics.more_is_better(course.score) else min
        return {scores.SCORE: values[-1], scores.BEST: best(values), scores.CONVERGENCE: fmean(values)}[self._quantity]

    def ratio(self, a: str, b: str) -> Ratio | None:
        """Return how much better one contender is than another, by their variants; None without scores of both."""
        return scores.ratio(self._known.get(a, {}), self._known.get(b, {}), metrics.more_is_better(self.name))

    def text(self, variant: str) -> str:
        """Return the mean of a contender over its seeds, such as `92.1 % (3 seeds)`; empty without any."""
        values = self._known.get(variant, {})
        if not values:
            return ""
        seeds = f"{len(values)} seed{'s' if len(values) > 1 else ''}"
        return f"{thresholds.shown(self.name, fmean(values.values()))} ({seeds})"
