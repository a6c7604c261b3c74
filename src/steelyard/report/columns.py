"""The columns of a verdict table, shared by page and terminal. Headings and helps have the words of the task."""

from collections.abc import Callable
from dataclasses import dataclass, replace

from steelyard.analysis import formatting, headlines
from steelyard.analysis.model import Comparison, Contender
from steelyard.results.quantities import (
    EPOCH,
    EVALUATION_TIME,
    FIRST_EPOCH,
    LARGEST_BATCH,
    LATENCIES,
    OF_PHASES,
    SECOND_EPOCH,
    TOTAL_TIME,
    Quantity,
    in_task,
)
from steelyard.wording import formatted
from steelyard.wording.formatted import Formatted
from steelyard.wording.notation import duration
from steelyard.wording.task_words import capitalised, fill
from steelyard_worker.case import INFERENCE, TRAINING, Case

Format = Callable[[Comparison, Contender, str], Formatted]

NARROW = 80
BESIDE_RANKED = 100
"""The smallest width that shows the time of a step or another quantity of an input beside the one that is ranked."""


@dataclass(frozen=True)
class Column:
    """`width`: the smallest terminal width in characters that shows the column; 0: only the page shows it, and not on paper.

    `quantity`: the name of the column's quantity, if it can be ranked. `per_input`: whether it depends on the input.
    `tasks`: those that have the column.
    """

    heading: str
    format: Format
    width: int
    help: str
    quantity: str = ""
    per_input: bool = False
    tasks: tuple[str, ...] = (TRAINING, INFERENCE)


def _latency(quantity: Quantity, percentile: str, width: int) -> Column:
    return Column(
        quantity.name,
        lambda _, x, _s: formatting.latency(x, quantity),
        width,
        f"The time of one batch that {percentile} of 100 batches do not exceed, each timed alone; averaged over processes.",
        quantity.name,
        tasks=quantity.tasks,
    )


COLUMNS = (
    Column(
        "mean {per_step}",
        lambda _, x, s: formatting.mean_step(x, s),
        NARROW,
        "Counted time divided by counted {steps}, averaged over processes. Lower is better.",
        "step time",
        per_input=True,
    ),
    Column(
        "median {per_step}",
        lambda _, x, s: Formatted(duration(x.speeds[s].median_ns)),
        120,
        "Half of the counted {steps} took less time; the median over processes.",
        per_input=True,
        tasks=(TRAINING,),  # an inference has the latency p50
    ),
    Column(
        "throughput",
        formatting.throughput,
        108,
        "Batch size divided by the mean time of {a_step}. Higher is better.",
        "throughput",
        per_input=True,
    ),
    *(_latency(*each) for each in zip(LATENCIES, ("50", "95", "99"), (100, 0, 112), strict=True)),
    Column(
        "first {step}",
        lambda _, x, _s: formatted.duration_or_dash(x.first_step_ns),
        NARROW,
        "Includes compilation, tracing and memory allocation.",
        "first step",
    ),
    Column(
        "time to first {step}",
        lambda _, x, _s: formatted.duration_or_dash(x.to_first_step_ns),
        0,
        "From the start of the process to the end of its first {step}, including imports.",
        "time to first step",
    ),
    Column(
        "peak memory",
        lambda _, x, _s: formatting.memory(x),
        94,
        "On the device if the framework reports it, otherwise of the whole process.",
        "peak memory",
    ),
    Column(
        "test metric",
        lambda _, x, _s: formatting.test_metric(x),
        120,
        "The workload's metric on the test split, after the same number of training steps for every contender.",
        tasks=(TRAINING,),
    ),
    Column(
        "share of peak",
        lambda _, x, s: formatting.share(x, s),
        0,
        "Arithmetic of {a_step} as a share of the fastest matrix product measured on this machine.",
        per_input=True,
    ),
    Column(
        "certified",
        lambda _, x, _s: Formatted(formatting.certificate(x.proof)),
        NARROW,
        "Whether the contender was proved to compute the same as the reference.",
    ),
)


LARGEST = Column(
    "largest batch",
    lambda _, x, _s: formatting.largest_batch(x),
    NARROW,
    "The most samples per step with which the network trained within its memory, twice; in brackets the least that did not fit.",
    LARGEST_BATCH.name,
    per_input=True,
)


def of_task(task: str) -> list[Column]:
    """Return the columns of a task, worded for it."""
    return [
        replace(each, heading=fill(each.heading, task), help=fill(each.help, task))
        for each in COLUMNS
        if task in each.tasks
    ]


def _over_processes(quantity: Quantity, width: int, text: str) -> Column:
    return Column(quantity.name, lambda _, x, _s: formatting.over_processes(quantity, x), width, text, quantity.name)


EPOCHS = (
    _over_processes(FIRST_EPOCH, NARROW, "Time of the first pass over the training data, compilation included."),
    _over_processes(SECOND_EPOCH, NARROW, "Time of the second pass over the training data."),
    _over_processes(EPOCH, 108, "Mean time of the counted passes over the training data."),
    _over_processes(TOTAL_TIME, NARROW, "Time of all epochs together, from the first step on, compilation included."),
    _over_processes(
        EVALUATION_TIME,
        94,
        "Mean time to apply the network to the test split; of several evaluations, without the first, which may compile.",
    ),
)
"""The columns of the table of whole epochs. The first four contain no evaluation."""
SHAPES = (
    Column(
        "shapes in epoch 1",
        lambda _, x, _s: formatting.shapes(x, 1, "shapes"),
        94,
        "Different shapes of the batches of the first epoch. Frameworks that compile for each shape do so in this epoch.",
    ),
    Column(
        "new shapes in epoch 2",
        lambda _, x, _s: formatting.shapes(x, 2, "new_shapes"),
        94,
        "Shapes of the batches of the second epoch that the first did not have.",
    ),
)
"""Additional columns of that table if every batch is cut to its own longest sample."""


def of_epochs(case: Case) -> tuple[Column, ...]:
    """Return the columns of the table of whole epochs for a case."""
    return (*EPOCHS, *SHAPES) if case.cuts_batches else EPOCHS


def of_phases(task: str) -> list[Column]:
    """Return the columns of the table of peak memory by phase, in the words of a task."""
    text = "Peak memory of this phase alone: on the device if the framework reports it, otherwise of the whole process."
    return [replace(_over_processes(each, NARROW, text), heading=in_task(each, task).label) for each in OF_PHASES]


def own(quantity: Quantity, task: str) -> Column:
    """Return the column that shows a quantity by which the table is not ranked; one from its declaration if it has no other."""
    known = (*of_task(task), LARGEST, *EPOCHS, *of_phases(task))
    return next((column for column in known if column.quantity == quantity.name), _declared(in_task(quantity, task)))


def _declared(quantity: Quantity) -> Column:
    better = "More" if quantity.more_is_better else "Less"
    text = f"{capitalised(quantity.label)}, averaged over processes. {better} is better."
    per_input = not quantity.per_process
    return Column(quantity.label, formatting.standing, NARROW, text, quantity.name, per_input, quantity.tasks)


def mean_heading(quantity: Quantity, task: str) -> str:
    """Return the heading of a ranked quantity, such as `mean peak memory`."""
    return f"mean {own(quantity, task).heading.removeprefix('mean ')}"


def ranked_by(quantity: Quantity, task: str) -> list[Column]:
    """Return the columns of a ranking: the quantity's mean, its ratio to the best, then the other columns."""
    quantity = in_task(quantity, task)
    divisor = headlines.of_the_best(quantity, "certified contender")
    ratio = f"{capitalised(quantity.label)} divided by {divisor}, from the rounds that both finished."
    shown_as = own(quantity, task)
    others = (
        replace(column, width=max(column.width, BESIDE_RANKED)) if column.per_input and column.width else column
        for column in of_task(task)
        if column != shown_as and not (column.per_input and quantity.per_process)
    )
    first = replace(shown_as, heading=mean_heading(quantity, task), format=formatting.standing, width=NARROW)
    return [
        LARGEST if shown_as is LARGEST else first,
        Column(f"ratio to {quantity.best}", formatting.ratio, NARROW, ratio),
        *others,
    ]
