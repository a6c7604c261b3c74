"""Asynchronous ranks, compared with ranks of the same framework that wait for each other in every step: speed and learning."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from statistics import fmean
from typing import TYPE_CHECKING, Any

from steelyard.analysis import thresholds
from steelyard.analysis.scaling import OTHER, SAME, alike, computation, is_shown, ratio_of, spread_of
from steelyard.results.learning import courses
from steelyard.results.quantities import STEP_TIME
from steelyard.statistics import survival
from steelyard.wording import formatted
from steelyard.wording.formatted import NO_VALUE
from steelyard.wording.notation import duration
from steelyard_worker.strategy import parts_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from steelyard.analysis.model import Comparison, Contender
    from steelyard.results.learning import Course, Unit
    from steelyard.statistics.intervals import Ratio

SECONDS_AND_EPOCHS: tuple[Unit, Unit] = ("seconds", "epochs")


@dataclass(frozen=True)
class Learnt:
    """The learning of a contender's trainings. `last`: the score after the last epoch, the mean over trainings.

    `seconds` and `epoch`: when half of the trainings had reached the threshold; None if fewer have, or there is no threshold.
    `arrived`: the number of trainings that reached it.
    """

    last: float
    seconds: float | None = None
    epoch: float | None = None
    arrived: int = 0


@dataclass(frozen=True)
class Beside:
    """A contender whose ranks do not wait, and one whose ranks do. `speed`: None if the two share no round.

    `threshold`: the hardest value of `score` that half of the trainings of either contender reached; None if there is none.
    `learnt`: of both, in this order; None if the network was not evaluated after every epoch.
    """

    contender: Contender
    waiting: Contender
    speed: Ratio | None
    score: str = ""
    threshold: float | None = None
    learnt: tuple[Learnt, Learnt] | None = None


def beside(comparison: Comparison) -> list[Beside]:
    """Return the contenders whose ranks do not wait in every step, each with the fastest of its framework whose ranks do."""
    found = []
    for contender in comparison.contenders:
        if (
            _counts(comparison, contender)
            and _is_asynchronous(contender)
            and (waiting := _waiting(comparison, contender))
        ):
            speed = ratio_of(comparison, waiting, contender)
            found.append(Beside(contender, waiting, speed, **_learning(comparison, contender, waiting)))
    return found


def _counts(comparison: Comparison, contender: Contender) -> bool:
    return is_shown(comparison, contender) and computation(contender) in (SAME, OTHER)


def _is_asynchronous(contender: Contender) -> bool:
    """Return whether its ranks exchange something, and do not wait for each other in every step."""
    spread = spread_of(contender)
    return spread is not None and spread.does.connects and not spread.does.waits


def _waits(contender: Contender) -> bool:
    """Return whether its parts exchange gradients in every step, each with a share of the batch and all weights."""
    spread = spread_of(contender)
    return spread is not None and spread.does.waits and not spread.does.divides


def _waiting(comparison: Comparison, contender: Contender) -> Contender | None:
    parts = parts_of(contender.case.strategy)
    found = [
        each
        for each in comparison.contenders
        if _counts(comparison, each)
        and _waits(each)
        and parts_of(each.case.strategy) == parts
        and alike(each, contender)
    ]
    return min(found, key=lambda each: _time(comparison, each), default=None)


def _time(comparison: Comparison, contender: Contender) -> float:
    by_round = {trial.job.round: trial for trial in contender.trials}
    return fmean(STEP_TIME.of_rounds(by_round, comparison.primary).values())


def _learning(comparison: Comparison, *both: Contender) -> dict[str, Any]:
    """Return the score, the threshold and the learning of two contenders; empty if they were not evaluated."""
    trained = [courses(each.trials) for each in both]
    scores = {course.score for one in trained for course in one}
    if not all(trained) or len(scores) != 1 or "" in scores:
        return {}
    (score,) = scores
    last = [_last(one, score) for one in trained]
    if not all(map(math.isfinite, last)):
        return {}
    for threshold in reversed(thresholds.by_difficulty(score, comparison.thresholds)):
        learnt = tuple(_learnt(one, score, threshold) for one in trained)
        if any(each.epoch is not None for each in learnt):
            return {"score": score, "threshold": threshold, "learnt": learnt}
    return {"score": score, "learnt": tuple(map(Learnt, last))}


def _learnt(trained: Sequence[Course], score: str, threshold: float) -> Learnt:
    seconds, epochs = (
        survival.share_arrived([each.reaches(threshold, unit) for each in trained]) for unit in SECONDS_AND_EPOCHS
    )
    second, epoch = (each.median.latest if each.median else None for each in (seconds, epochs))
    return Learnt(_last(trained, score), second, epoch, seconds.arrived)


def _last(trained: Sequence[Course], score: str) -> float:
    return fmean(each.scores[score][-1] for each in trained)


def line(each: Beside) -> str:
    """Return the sentences about one contender."""
    title, waiting = each.contender.title, each.waiting.case.strategy
    found = (
        f"{title}: {speed_text(each)} the speed of {waiting}."
        if each.speed
        else f"{title}: no round in common with {waiting}."
    )
    if not each.learnt:
        return found
    own, other = each.learnt
    if each.threshold is not None:
        threshold = f"{each.score[:1].upper()}{each.score[1:]} {thresholds.shown(each.score, each.threshold)}"
        found += f" {threshold} {when_text(own)}, with {waiting} {when_text(other)}."
    last, its = (thresholds.shown(each.score, one.last) for one in each.learnt)
    return f"{found} At the end {last}, with {waiting} {its}."


def speed_text(each: Beside) -> str:
    """Return the speed with its interval; a dash if there is none."""
    return str(formatted.of_ratio(each.speed)) if each.speed else NO_VALUE


def when_text(learnt: Learnt) -> str:
    """Return when half of the trainings had reached the threshold."""
    if learnt.seconds is None or learnt.epoch is None:
        return "in fewer than half of its trainings" if learnt.arrived else "never"
    return f"by {duration(learnt.seconds * 1e9)} (epoch {learnt.epoch:g})"


def as_dict(each: Beside, name: Callable[[Contender], str]) -> dict[str, Any]:
    """Return the figures for scripts; `name` is that of a contender of this comparison."""
    own, other = each.learnt or (None, None)
    return {
        "case": name(each.contender),
        "waiting": name(each.waiting),
        "speed": asdict(each.speed) if each.speed else None,
        "score": each.score or None,
        "threshold": each.threshold,
        "learnt": asdict(own) if own else None,
        "learnt_by_waiting": asdict(other) if other else None,
    }
