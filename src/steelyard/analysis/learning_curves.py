"""What trainings have reached: which are compared, by which score, and when they arrived at its thresholds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from steelyard.analysis import thresholds, trainings

if TYPE_CHECKING:
    from collections.abc import Sequence

    from steelyard.analysis.model import Comparison
    from steelyard.analysis.thresholds import Arrivals
    from steelyard.analysis.trainings import Line


@dataclass(frozen=True)
class Learning:
    """The trainings of comparisons that differ in their seed alone; `comparison` is the first of them.

    `lines`: the contenders; `scored`: those whose trainings all have the test metric `score`, empty without one.
    `seeds`: those of the trainings, in order. `basis`: on how many independent trainings intervals rest.
    `headings`, `rows`: the table of thresholds, empty without any; `note`: how well its times are known. `sentence`: when half
    of each contender's trainings had reached the hardest threshold; `otherwise`: the same of those with another algorithm, if
    the first sentence is about others. Both are empty without thresholds.
    """

    comparison: Comparison
    lines: list[Line]
    scored: list[Line]
    score: str
    seeds: tuple[int, ...]
    basis: str
    headings: list[str]
    rows: list[Arrivals]
    sentence: str
    otherwise: str
    note: str


def learning(comparisons: Sequence[Comparison]) -> Learning | None:
    """Return what comparisons that differ in their seed alone have learned: one comparison, several, or none.

    The trainings of a contender, its rounds and seeds, belong together. None unless one was trained for at least two epochs.
    """
    lines = trainings.lines(comparisons)
    if not lines:
        return None
    first = comparisons[0]
    seeds = tuple(each.contenders[0].case.seed for each in comparisons if each.contenders)
    score = next((course.score for line in lines for course in line.courses if course.score), "")
    scored = [line for line in lines if score and all(course.score == score for course in line.courses)]
    headings, rows, sentences, note = [], [], ("", ""), ""
    if scored and first.thresholds:
        headings, rows = thresholds.headings(score, first.thresholds), thresholds.rows(scored, first.thresholds)
        sentences, note = thresholds.answer(scored, first.thresholds, score), thresholds.note(scored)
    return Learning(first, lines, scored, score, seeds, trainings.basis(lines), headings, rows, *sentences, note)
