"""What may matter to somebody who chooses a framework, and what each of it costs in a process of a contender."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from steelyard.report.words import said
from steelyard.results import learning
from steelyard.results.job_times import job_time
from steelyard.results.quantities import PEAK_MEMORY, PROCESS
from steelyard_worker.case import TRAINING

if TYPE_CHECKING:
    from collections.abc import Callable

    from steelyard.report.model import Comparison, Contender
    from steelyard.results.trials import Trial

GOALS = {
    "speed": "time per step",
    "short-jobs": "time of a whole job with few steps, start included",
    "memory": "peak memory",
    "accuracy-in-time": "time of training until the test metric has reached a value",
    "exchange": "a network that can be exported, as ONNX",
    "maintained": "a framework that is still maintained",
}
"""Name of a goal, as it is typed -> what it is about."""
CONDITIONS = ("exchange", "maintained")
"""Goals that a contender meets or does not: they have no size, so they set contenders aside."""
SHORT_JOB = 100
"""Steps of a short job, if nothing else is asked."""


@dataclass(frozen=True)
class Wishes:
    """What a person asked for: goals with weights above 0, the length of the job, and values of the test metric.

    Without weights, each measured goal is answered by itself. `steps` and `epochs` 0: `SHORT_JOB` steps. Without thresholds,
    those of the run. `only_maintained`: retired frameworks are set aside although that was not asked for.
    """

    weights: dict[str, float]
    conditions: tuple[str, ...] = ()
    steps: int = 0
    epochs: int = 0
    thresholds: tuple[float, ...] = ()
    only_maintained: bool = False

    @property
    def required(self) -> tuple[str, ...]:
        """The conditions that a contender must meet to be named."""
        more = ("maintained",) if self.only_maintained and "maintained" not in self.conditions else ()
        return (*self.conditions, *more)

    @property
    def checked(self) -> tuple[str, ...]:
        """The conditions to state: those asked for; all of them where nothing is asked."""
        return self.required if self.weights or self.conditions else CONDITIONS


NONE = Wishes({})
"""Nothing is asked: each measured goal is answered by itself, and every condition is stated."""


@dataclass(frozen=True)
class Costs:
    """What a goal costs each contender: case id -> {round: cost above zero}, all of them comparable.

    `thing`: what is compared, in running text. `lacking`: (contender, why it has no cost). `reason`: why nothing is known of the
    goal, and which run would measure it; then there are no costs.
    """

    thing: str
    values: dict[str, dict[int, float]]
    lacking: tuple[tuple[Contender, str], ...] = ()
    reason: str = ""


def measured(task: str) -> tuple[str, ...]:
    """Return the goals with a size that a task has: an inference does not learn."""
    others = CONDITIONS if task == TRAINING else (*CONDITIONS, "accuracy-in-time")
    return tuple(goal for goal in GOALS if goal not in others)


def costs(goal: str, comparison: Comparison, contenders: list[Contender], wishes: Wishes) -> Costs:
    """Return what a measured goal costs these contenders in each process."""
    if goal == "short-jobs":
        return _short_jobs(comparison, contenders, wishes)
    if goal == "accuracy-in-time":
        return _accuracy(comparison, contenders, wishes)
    if goal == "memory":
        found = _by_round(contenders, lambda trial: PEAK_MEMORY.read(trial, PROCESS))
        return _complete("peak memory", contenders, found, "Its peak memory was not recorded.")
    found = _by_round(contenders, lambda trial: trial.location_ns(comparison.primary))
    return _complete(said("time per {step}", comparison.task), contenders, found, "It has no counted steps.")


def starts(contenders: list[Contender]) -> dict[str, dict[int, float]]:
    """Return what a process needs once, in nanoseconds: imports, building, and by how much its early steps take longer."""
    return _by_round(contenders, lambda trial: time.start_ns if (time := job_time(trial)) else None)


def _by_round(
    contenders: list[Contender], read: Callable[[Trial], float | None]
) -> dict[str, dict[int, float]]:  # fmt: skip
    found = {each.case.id: {trial.job.round: read(trial) for trial in each.trials} for each in contenders}
    return {key: {number: value for number, value in rounds.items() if value} for key, rounds in found.items()}


def _complete(
    thing: str, contenders: list[Contender], values: dict[str, dict[int, float]], otherwise: str, reason: str = ""
) -> Costs:
    """Return the costs of those that have any; the others lack them for the reason `otherwise`."""
    lacking = tuple((each, otherwise) for each in contenders if not values[each.case.id])
    if len(lacking) == len(contenders):
        return Costs(thing, {}, reason=reason or f"No process recorded its {thing}.")
    return Costs(thing, {key: rounds for key, rounds in values.items() if rounds}, lacking)


def _short_jobs(comparison: Comparison, contenders: list[Contender], wishes: Wishes) -> Costs:
    per_epoch = max((each.steps_per_epoch for each in contenders), default=0)
    if wishes.epochs and not per_epoch:
        reason = f"How many steps an epoch has is known where whole epochs are trained: {_run(comparison, 'epochs:3')}"
        return Costs("", {}, reason=reason)
    steps = wishes.epochs * per_epoch or wishes.steps or SHORT_JOB
    words = f"{steps:,} {said('{step}' if steps == 1 else '{steps}', comparison.task)}"
    values = _by_round(contenders, lambda trial: time.after(steps) if (time := job_time(trial)) else None)
    needed = said("The processes have no {steps} after their start. A run that counts some: ", comparison.task)
    lacks = said("It has no {steps} after its start.", comparison.task)
    return _complete(
        f"time of a job of {words}", contenders, values, lacks, needed + _run(comparison, "sequential")
    )  # fmt: skip


def _accuracy(comparison: Comparison, contenders: list[Contender], wishes: Wishes) -> Costs:
    thresholds = wishes.thresholds or comparison.thresholds
    if comparison.task != TRAINING:
        return Costs("", {}, reason="An inference does not learn, so it reaches no value of the test metric.")
    trained = {each.case.id: learning.courses(each.trials) for each in contenders}
    if not any(course.scores for courses in trained.values() for course in courses):
        command = _run(comparison, "epochs:5", "--threshold 0.9")
        return Costs("", {}, reason=f"No whole epochs were trained and evaluated. A run that does: {command}")
    if not thresholds:
        advice = "Name one with: `steelyard advise --threshold 0.9`"
        return Costs("", {}, reason=f"No value of the test metric was named. {advice}")
    shown = " and ".join(f"{each:g}" for each in thresholds)
    values = _by_round(contenders, lambda trial: _time_to(trial, thresholds))
    lacking = []
    for each in contenders:
        missed = len(each.trials) - len(values[each.case.id])
        if missed or not each.trials:
            values[each.case.id] = {}
            lacking.append((each, f"{missed} of its {len(each.trials)} trainings did not reach {shown}."))
    thing = f"time of training until the test metric has reached {shown}"
    found = {key: rounds for key, rounds in values.items() if rounds}
    if not found:
        reason = f"No contender reached {shown} in every training. Name lower values with --threshold, or train longer."
        return Costs(thing, {}, reason=reason)
    return Costs(thing, found, tuple(lacking))


def _time_to(trial: Trial, thresholds: tuple[float, ...]) -> float | None:
    """Return the geometric mean over the thresholds of the seconds until a training reached them; None unless it reached all."""
    course = learning.course(trial)
    if not course or not course.scores:
        return None
    arrivals = [course.reaches(threshold, "seconds") for threshold in thresholds]
    if not all(each.arrived for each in arrivals):
        return None
    return math.exp(math.fsum(math.log(each.at) for each in arrivals) / len(arrivals))


def _run(comparison: Comparison, protocol: str, *more: str) -> str:
    """Return the command of a run that would measure something else of the same workload with the same frameworks."""
    case, modes = comparison.contenders[0].case, dict[str, dict[str, bool]]()
    for each in comparison.contenders:
        modes.setdefault(each.case.environment, {})[each.mode] = each.mode == each.facts.default_mode
    parts = ["steelyard run", f"-w {case.workload}:{case.preset}", *(f"-f {name}" for name in modes)]
    parts += [f"--mode {name}={','.join(each)}" for name, each in modes.items() if not all(each.values())]
    parts += ["--task inference"] if case.task != TRAINING else []
    return f"`{' '.join([*parts, f'--protocol {protocol}', *more])}`"
