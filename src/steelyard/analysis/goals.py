"""The goals of somebody who chooses a framework, and the cost of each goal in a process of a contender."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from steelyard.analysis import energy, port_runs, trainings
from steelyard.results import learning
from steelyard.results.job_times import job_time
from steelyard.results.quantities import COST, ENERGY, PEAK_MEMORY, PROCESS, in_task, quantity
from steelyard.statistics import survival
from steelyard.wording.notation import duration
from steelyard.wording.task_words import fill
from steelyard_worker.case import TRAINING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from steelyard.analysis.model import Comparison, Contender
    from steelyard.results.learning import Course
    from steelyard.results.quantities import Quantity
    from steelyard.results.trials import Trial
    from steelyard.statistics.survival import Arrival

GOALS = {
    "speed": "time per step",
    "short-jobs": "time of a whole job with few steps, start included",
    "memory": "peak memory",
    "energy": "energy per step, by the meters of the machine",
    "cost": "cost per step, at a price",
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
    """The wishes of a person: goals with weights above 0, the length of the job, and values of the test metric.

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
    """The cost of a goal for each contender: case id -> {round: cost above zero}, all of them comparable.

    `thing`: what is compared, in running text. `lacking`: (contender, why it has no cost, or what it lacks). `reason`: why
    nothing is known of the goal, and which run would measure it; then there are no costs. `bounds`: of costs by seed, which are
    known to intervals only: case id -> {seed: the least and the largest that it may be}; a cost is the largest that is known.
    """

    thing: str
    values: dict[str, dict[int, float]]
    lacking: tuple[tuple[Contender, str], ...] = ()
    reason: str = ""
    bounds: dict[str, dict[int, tuple[float, float]]] = field(default_factory=dict)

    @property
    def by_seed(self) -> bool:
        """Whether the costs are by seed: trainings are the replicates, and not rounds."""
        return bool(self.bounds)

    def bounds_of(self, key: str) -> dict[int, tuple[float, float]]:
        """Return the least and the largest cost that each replicate of a contender may have."""
        return self.bounds.get(key) or {number: (value, value) for number, value in self.values[key].items()}


def measured(comparison: Comparison) -> tuple[str, ...]:
    """Return the goals with a size that a comparison has: an inference does not learn, and nothing costs without a price."""
    others = list(CONDITIONS)
    others += ["accuracy-in-time"] if comparison.task != TRAINING else []
    others += [] if comparison.price else ["cost"]
    return tuple(goal for goal in GOALS if goal not in others)


def costs(
    goal: str, comparison: Comparison, contenders: list[Contender], wishes: Wishes, same: Sequence[Comparison] = ()
) -> Costs:
    """Return what a measured goal costs these contenders: in each process, or in each seed if it is about trainings.

    `same`: the comparisons that differ from this one in their seed alone, itself included. UserError: a cost without a price.
    """
    if goal == "short-jobs":
        return _short_jobs(comparison, contenders, wishes)
    if goal == "accuracy-in-time":
        return _accuracy(comparison, contenders, wishes, same or [comparison])
    if goal == "energy":
        return _by_meters(comparison, contenders, in_task(ENERGY, comparison.task))
    if goal == "cost":
        return _money(comparison, contenders)
    if goal == "memory":
        found = _by_round(contenders, lambda trial: PEAK_MEMORY.read(trial, PROCESS))
        return _complete("peak memory", contenders, found, "Its peak memory was not recorded.")
    found = _by_round(contenders, lambda trial: trial.location_ns(comparison.primary))
    return _complete(fill("time per {step}", comparison.task), contenders, found, "It has no counted steps.")


def over_seeds(goal: str, comparison: Comparison, found: Costs, wishes: Wishes, same: Sequence[Comparison]) -> Costs:
    """Return the costs of a goal by seed, to be combined with others by seed: the geometric mean over the rounds of each seed.

    `found`: the costs by round in this comparison.
    """
    values: dict[str, dict[int, float]] = {key: {} for key in found.values}
    ids = {each.variant: each.case.id for each in comparison.contenders}
    for one in same:
        own = found if one is comparison else costs(goal, one, list(one.contenders), wishes)
        for each in one.contenders:
            key = ids.get(each.variant, "")
            if key in values and (rounds := own.values.get(each.case.id)):
                values[key][each.case.seed] = math.exp(math.fsum(map(math.log, rounds.values())) / len(rounds))
    return replace(found, values={key: by_seed for key, by_seed in values.items() if by_seed})


def starts(contenders: list[Contender]) -> dict[str, dict[int, float]]:
    """Return what a process needs once, in nanoseconds: imports, building, and by how much its early steps take longer."""
    return _by_round(contenders, lambda trial: time.start_ns if (time := job_time(trial)) else None)


def _by_round(contenders: list[Contender], read: Callable[[Trial], float | None]) -> dict[str, dict[int, float]]:
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


def _by_meters(comparison: Comparison, contenders: list[Contender], counted: Quantity) -> Costs:
    """Return a quantity that comes from the meters of the machine, and never from anything else."""
    values = _by_round(contenders, lambda trial: counted.read(trial, comparison.primary))
    none = energy.why_none(comparison)
    return _complete(counted.label, contenders, values, "No meter counted its energy for long enough.", none)


def _money(comparison: Comparison, contenders: list[Contender]) -> Costs:
    """Return the cost of a step at the price of the comparison: a multiple of its time, or of its energy."""
    cost = in_task(quantity(COST, comparison.price), comparison.task)
    if comparison.price and comparison.price.of_energy:
        return _by_meters(comparison, contenders, cost)
    values = _by_round(contenders, lambda trial: cost.read(trial, comparison.primary))
    return _complete(cost.label, contenders, values, "It has no counted steps.")


def _short_jobs(comparison: Comparison, contenders: list[Contender], wishes: Wishes) -> Costs:
    per_epoch = max((each.steps_per_epoch for each in contenders), default=0)
    if wishes.epochs and not per_epoch:
        reason = f"How many steps an epoch has is known where whole epochs are trained: {_run(comparison, 'epochs:3')}"
        return Costs("", {}, reason=reason)
    steps = wishes.epochs * per_epoch or wishes.steps or SHORT_JOB
    words = f"{steps:,} {fill('{step}' if steps == 1 else '{steps}', comparison.task)}"
    values = _by_round(contenders, lambda trial: time.after(steps) if (time := job_time(trial)) else None)
    needed = fill("The processes have no {steps} after their start. A run that counts some: ", comparison.task)
    lacks = fill("It has no {steps} after its start.", comparison.task)
    return _complete(f"time of a job of {words}", contenders, values, lacks, needed + _run(comparison, "sequential"))


def _accuracy(comparison: Comparison, contenders: list[Contender], wishes: Wishes, same: Sequence[Comparison]) -> Costs:
    """Return the seconds until trainings have reached the thresholds, as the mean over them, by seed."""
    thresholds = wishes.thresholds or comparison.thresholds
    if comparison.task != TRAINING:
        return Costs("", {}, reason="An inference does not learn, so it reaches no value of the test metric.")
    if port_runs.is_one(each.case for each in contenders):
        return Costs("", {}, reason="The steps of a port's models are timed, and no epochs are trained.")
    trained = {each.case.id: trainings.of_variant(each.variant, same) for each in contenders}
    scored = {key: _scored(by_seed) for key, by_seed in trained.items()}
    if not any(scored.values()):
        command = _run(comparison, "epochs:5", "--threshold 0.9")
        return Costs("", {}, reason=f"No whole epochs were trained and evaluated. A run that does: {command}")
    if not thresholds:
        advice = "Name one with: `steelyard advise --threshold 0.9`"
        return Costs("", {}, reason=f"No value of the test metric was named. {advice}")
    shown = " and ".join(f"{each:g}" for each in thresholds)
    arrivals = {key: learning.arrivals(by_seed, thresholds, "seconds") for key, by_seed in scored.items()}
    reached = {key: found for key, found in arrivals.items() if any(each.arrived for each in found.values())}
    mean = "mean " if len(thresholds) > 1 else ""
    thing = f"{mean}time of training until the test metric has reached {shown}"
    if not reached:
        reason = f"No training of any contender reached {shown}. Name lower values with --threshold, or train longer."
        return Costs(thing, {}, reason=reason)
    lacking = [(each, said) for each in contenders if (said := _unreached(arrivals[each.case.id], shown))]
    values = {key: {seed: each.at for seed, each in found.items() if each.at} for key, found in reached.items()}
    bounds = {
        key: {seed: (each.earliest, each.latest) for seed, each in found.items()} for key, found in reached.items()
    }
    return Costs(thing, values, tuple(lacking), bounds=bounds)


def _scored(by_seed: dict[int, list[Course]]) -> dict[int, list[Course]]:
    """Return the trainings that were evaluated after their epochs."""
    found = {seed: [each for each in rounds if each.scores] for seed, rounds in by_seed.items()}
    return {seed: rounds for seed, rounds in found.items() if rounds}


def _unreached(arrivals: dict[int, Arrival], shown: str) -> str:
    """Return how many trainings reached the values, where some did not, and how those count."""
    late = [each for each in arrivals.values() if not each.arrived]
    if not late:
        return "" if arrivals else "It has no training that was evaluated."
    if len(late) == len(arrivals):
        none = "Its training did not reach" if len(late) == 1 else f"None of its {len(late)} trainings reached"
        return f"{none} {shown}."
    median = survival.share_arrived(list(arrivals.values())).median
    half = f", half of them within {duration(median.latest * 1e9)}" if median else ""
    others = "the other counts as longer than it" if len(late) == 1 else "the others count as longer than they"
    return (
        f"{len(arrivals) - len(late)} of its {len(arrivals)} trainings reached {shown}{half}; {others} lasted, so it cannot be "
        "shown to be faster than another."
    )


def _run(comparison: Comparison, protocol: str, *more: str) -> str:
    """Return the command of a run that would measure something else of the same workload with the same frameworks."""
    case, modes = comparison.contenders[0].case, dict[str, dict[str, bool]]()
    for each in comparison.contenders:
        modes.setdefault(each.case.environment, {})[each.mode] = each.mode == each.facts.default_mode
    parts = ["steelyard run", f"-w {case.workload}:{case.preset}", *(f"-f {name}" for name in modes)]
    parts += [f"--mode {name}={','.join(each)}" for name, each in modes.items() if not all(each.values())]
    parts += ["--task inference"] if case.task != TRAINING else []
    return f"`{' '.join([*parts, f'--protocol {protocol}', *more])}`"
