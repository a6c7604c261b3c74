"""The quantities that can be ranked: unit, direction, wording, and how to read them from a trial."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from statistics import fmean

import numpy as np

from steelyard.errors import UserError, nearest
from steelyard.results import ranks, utilisation
from steelyard.results.trials import Trial
from steelyard.statistics.intervals import Ratio
from steelyard.statistics.sentences import TIME_PER_STEP, Wording
from steelyard.statistics.verdicts import Verdict
from steelyard.wording.prices import Price
from steelyard.wording.task_words import fill
from steelyard_worker.case import INFERENCE, TRAINING

NODES = "nodes"
"""The name of the number of a graph's operations in [[published]] tables. It has no spread, so it is not ranked."""
PROCESS = "process"
"""The input of quantities that have one value for the whole process."""


@dataclass(frozen=True)
class Quantity:
    """A positive number per trial: one for every input, or one for the whole process (`per_process`).

    `read(trial, input)` returns None where the trial has no such value. `wording` has the words of a verdict, `improved` and
    `worsened` those of a change, `best` the word for the best contender or value. `label` is the name in running text. `tasks`
    are those that have the quantity. `price`: that of a cost; None for whatever was measured.
    """

    name: str
    unit: str
    read: Callable[[Trial, str], float | None]
    wording: Wording
    label: str
    per_process: bool = True
    more_is_better: bool = False
    best: str = "fastest"
    improved: str = "faster"
    worsened: str = "slower"
    tasks: tuple[str, ...] = (TRAINING, INFERENCE)
    price: Price | None = None

    @property
    def best_value(self) -> str:
        """The best value in words, such as `time per step of the fastest` or `least peak memory`."""
        return f"{self.label} of the fastest" if self.best == "fastest" else f"{self.best} {self.label}"

    def of_rounds(self, trials: Mapping[int, Trial], source: str) -> dict[int, float]:
        """Return {round: value}, without the rounds that have none."""
        values = {number: self.read(trial, source) for number, trial in trials.items()}
        return {number: value for number, value in values.items() if value}

    def cost(self, value: float) -> float:
        """Return a number that is better when smaller: the value itself, or its inverse."""
        return 1 / value if self.more_is_better else value

    def ratio(self, verdict: Verdict) -> Ratio:
        """Return the ratio of the values of A and B from a verdict, which is about costs."""
        found = verdict.flipped() if self.more_is_better else verdict
        return Ratio(found.ratio, found.low, found.high, found.rounds)


def _throughput(trial: Trial, source: str) -> float | None:
    location = trial.location_ns(source)
    return trial.batch * 1e9 / location if location else None


def _epoch(trial: Trial) -> float | None:
    """Return the mean time of the counted epochs; None if no whole epochs were trained."""
    counted = [epoch for epoch, blocks in trial.epochs.items() if blocks[-1].phase == "counted"]
    return fmean(trial.epochs_ns[epoch] for epoch in counted) if counted else None


def _evaluation(trial: Trial) -> float | None:
    """Return the mean time of an evaluation; of several, without the first, which may compile."""
    times = [each.elapsed_ns for each in trial.evaluations]
    return fmean(times[1:] or times) if times else None


def _time(thing: str) -> Wording:
    return _having(thing, "shorter", "shortest", "longer")


def _having(thing: str, more: str, most: str, less: str) -> Wording:
    """Return the wording for contenders that have something, such as a higher throughput than another."""
    return Wording(
        better=f"{{a}} has a {{factor}} {more} {thing} than {{b}}",
        ahead=f"{{who}} had the {more} {thing} on average",
        best=f"{{who}} has the {most} {thing}",
        best_together=f"{{who}} have the {most} {thing}",
        best_of=f"The {most} {thing} is that of {{who}}",
        worse=f"has {{factors}} {less} {thing}",
    )


def _latency(percentile: int) -> "Quantity":
    """Return the latency of one batch that `percentile` of 100 batches do not exceed, by process.

    A process that timed too few batches one by one has no such value: of 99 batches, none is the slowest of a hundred.
    """
    share = percentile / 100

    def read(trial: Trial, _: str) -> float | None:
        latencies = trial.latencies_ns
        return float(np.quantile(latencies, share)) if len(latencies) * (1 - share) >= 1 else None

    name = f"latency p{percentile}"
    return Quantity(
        name,
        "ns",
        read,
        _having(name, "lower", "lowest", "higher"),
        name,
        best="lowest",
        improved="lower",
        worsened="higher",
        tasks=(INFERENCE,),
    )


LESS_MEMORY = Wording(
    better="{a} uses {factor} less memory than {b}",
    ahead="{who} used less memory on average",
    best="{who} uses the least memory",
    best_together="{who} use the least memory",
    best_of="The least memory is used by {who}",
    worse="uses {factors} more memory",
)

LESS_ENERGY = Wording(
    better="{a} uses {factor} less energy than {b}",
    ahead="{who} used less energy on average",
    best="{who} uses the least energy",
    best_together="{who} use the least energy",
    best_of="The least energy is used by {who}",
    worse="uses {factors} more energy",
)

LESS_MONEY = Wording(
    better="{a} costs {factor} less than {b}",
    ahead="{who} cost less on average",
    best="{who} costs the least",
    best_together="{who} cost the least",
    best_of="The least is the cost of {who}",
    worse="costs {factors} more",
)

STEP_TIME = Quantity(
    "step time",
    "ns",
    lambda trial, source: trial.location_ns(source),
    TIME_PER_STEP,
    "time per step",
    per_process=False,
)
THROUGHPUT = Quantity(
    "throughput",
    "samples/s",
    _throughput,
    _having("throughput", "higher", "highest", "lower"),
    "throughput",
    per_process=False,
    more_is_better=True,
    best="highest",
    improved="higher",
    worsened="lower",
)
LARGEST_BATCH = Quantity(
    "largest batch",
    "samples",
    lambda trial, _: trial.job.schedule.batch or None,
    _having("batch", "larger", "largest", "smaller"),
    "batch",
    per_process=False,
    more_is_better=True,
    best="largest",
    improved="larger",
    worsened="smaller",
    tasks=(TRAINING,),
)
FIRST_STEP = Quantity(
    "first step",
    "ns",
    lambda trial, _: trial.phases_ns.get("first-step"),
    _having("first step", "faster", "fastest", "slower"),
    "first-step time",
)
TIME_TO_FIRST_STEP = Quantity(
    "time to first step",
    "ns",
    lambda trial, _: trial.first_step_since_spawn_ns,
    _time("time to first step"),
    "time to first step",
    best="shortest",
)
PEAK_MEMORY = Quantity(
    "peak memory",
    "bytes",
    lambda trial, _: ranks.peak_bytes(trial),
    LESS_MEMORY,
    "peak memory",
    best="least",
    improved="less",
    worsened="more",
)
ENERGY = Quantity(
    "energy",
    "J",
    lambda trial, source: sum(utilisation.joules_per_step(trial, source).values()) or None,
    LESS_ENERGY,
    "energy per step",
    per_process=False,
    best="least",
    improved="less",
    worsened="more",
)
"""By the meters of the machine, which count all programs; never estimated. None where no meter can be read."""


def _memory(phase: str, name: str) -> Quantity:
    def read(trial: Trial, _: str) -> float | None:
        return ranks.total(trial, lambda one: one.memory_of(phase))

    return replace(PEAK_MEMORY, name=name, read=read, label=name)


OF_PHASES = tuple(
    _memory(*each)
    for each in (
        ("import", "memory of import"),
        ("build", "memory of build"),
        ("first-step", "memory of first step"),
        ("warm-up", "memory of warm-up"),
        ("counted", "memory of counted steps"),
        ("evaluation", "memory of evaluation"),
    )
)
"""The peak memory of each phase of a process, where the system can begin a peak again."""


def _of_trainings(name: str, read: Callable[[Trial], float | None], label: str, thing: str = "") -> Quantity:
    """Return a time that only trainings have. `thing`: the words for it, if they differ from the name."""
    wording = _time(thing or name)
    return Quantity(name, "ns", lambda trial, _: read(trial), wording, label, best="shortest", tasks=(TRAINING,))


TOTAL_TIME = _of_trainings(
    "total time", lambda trial: sum(trial.epochs_ns.values()) or None, "total training time", "total training time"
)
EPOCH = _of_trainings("epoch", _epoch, "time per epoch")
FIRST_EPOCH = _of_trainings("first epoch", lambda trial: trial.epochs_ns.get(1), "first-epoch time")
SECOND_EPOCH = _of_trainings("second epoch", lambda trial: trial.epochs_ns.get(2), "second-epoch time")
EVALUATION_TIME = _of_trainings("evaluation time", _evaluation, "evaluation time")

LATENCIES = tuple(map(_latency, (50, 95, 99)))

# The wording for inference where it differs: batches instead of steps.
OF_INFERENCE = {
    "step time": replace(STEP_TIME, label="time per batch"),
    "energy": replace(ENERGY, label="energy per batch"),
    "first step": replace(
        FIRST_STEP, label="first-batch time", wording=_having("first batch", "faster", "fastest", "slower")
    ),
    "time to first step": replace(
        TIME_TO_FIRST_STEP, label="time to first batch", wording=_time("time to first batch")
    ),
    "memory of first step": replace(OF_PHASES[2], label="memory of first batch"),
    "memory of counted steps": replace(OF_PHASES[4], label="memory of counted batches"),
}

OF_EPOCHS = (TOTAL_TIME, EPOCH, FIRST_EPOCH, SECOND_EPOCH, EVALUATION_TIME)
"""Except for the evaluation time, only processes that train whole epochs have these."""
_ANY = (STEP_TIME, THROUGHPUT, LARGEST_BATCH, FIRST_STEP, TIME_TO_FIRST_STEP, PEAK_MEMORY, ENERGY)
QUANTITIES = {each.name: each for each in (*_ANY, *LATENCIES, *OF_EPOCHS, *OF_PHASES)}


COST = "cost"
"""The name of the quantity that needs a price. It is not measured, so it is not among `QUANTITIES`."""


def money(price: Price, task: str = TRAINING) -> Quantity:
    """Return what a step costs: the price times its time or, where the price is for energy, its energy.

    Values are those of one step, in the currency; texts show those of a million, which is what the label says.
    """
    source = ENERGY if price.of_energy else STEP_TIME

    def read(trial: Trial, name: str) -> float | None:
        value = source.read(trial, name)
        return value * price.per_unit if value else None

    return Quantity(
        COST,
        fill(f"{price.currency} per {{step}}", task).strip(),
        read,
        LESS_MONEY,
        fill("cost per million {steps}", task),
        per_process=False,
        best="least",
        improved="lower",
        worsened="higher",
        price=price,
    )


def in_task(found: Quantity, task: str) -> Quantity:
    """Return a quantity in the words of a task."""
    if found.price:
        return money(found.price, task)
    return OF_INFERENCE.get(found.name, found) if task == INFERENCE else found


def quantity(name: str, price: Price | None = None) -> Quantity:
    """Return a quantity by its name or its label, `step time` or `time per step`; `price`: that of a cost.

    UserError: there is no such quantity, and the nearest is suggested; or a cost has no price.
    """
    labelled = {each.label: each.name for each in QUANTITIES.values()}
    name = labelled.get(name, name)
    if name == COST:
        if price is None:
            raise UserError(
                "A cost needs a price: give one with --price, such as 1.2/h, to `steelyard report` or `advise`."
            )
        return money(price)
    if name not in QUANTITIES:
        raise UserError(f"There is no quantity '{name}'.{nearest(name, [*QUANTITIES, COST])}")
    return QUANTITIES[name]
