"""The sentences on a comparison as a whole: its description, its headline and its verdict, and the names of its inputs."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from steelyard.analysis import largest_batch as largest_batches
from steelyard.analysis import port_runs
from steelyard.results.quantities import LARGEST_BATCH
from steelyard.statistics import sentences
from steelyard.statistics.answer import answer
from steelyard.statistics.sentences import listed
from steelyard.wording import formatted
from steelyard.wording.task_words import fill

if TYPE_CHECKING:
    from collections.abc import Iterator

    from steelyard.analysis.model import Comparison
    from steelyard.results.quantities import Quantity
    from steelyard_worker.case import Optimizer

INPUTS = {
    "pipeline": "{Task} with the framework's own input pipeline",
    "cached": "{Task} on one cached batch of synthetic data, without an input pipeline",
    "process": "One value per process",
}
"""Input -> heading of its table, with the words of the task."""
EPOCHS = "Whole epochs"
PHASES = "Peak memory by phase"
SHORT_INPUTS = {"pipeline": "own input pipeline", "cached": "cached batch", "process": "whole process"}
INTERVALS = (
    "Ranges in brackets are 95 % confidence intervals, based on how much separate trials differed. With several "
    "frameworks in a table the ranges of ratios are widened, so that the chance of even one wrong verdict in it is 5 % at most "
    "(simulated: up to 3.6 %, and up to 6.2 % where one framework is 100 times as noisy as the others)."
)
RULE = (
    "The verdicts follow the same decision rule as those on the time per {step}, with the same error. A sequential run ends "
    "its rounds by the time per {step}."
)
BATCH = "batch"
"""The name of the size that is always shown."""
NAMED_TENSORS = 3
"""The most tensors of a group that are named."""
ONE_PROCESS = "No verdict: only one process of each contender was measured."


def describe(comparison: Comparison) -> str:
    """Return a few sentences on sizes, data, given weights, a changing learning rate, and the run whose rounds are used again."""
    origin = f" Data: {comparison.origin.rstrip('.')}." if comparison.origin else ""
    weights = f" Initial weights: {comparison.initial_weights}." if comparison.initial_weights else ""
    rules = {contender.case.optimizer for contender in comparison.contenders}
    changing = {
        f" Learning rate: {rule.learning_rate:g}, {rule.schedule.summary}." for rule in rules if rule.schedule.changes
    }
    groups = sorted({sentence for rule in rules for sentence in _of_groups(rule)})
    found = comparison.reused
    earlier = (
        f" Measured {formatted.moment(found['created'])} in run {found['run']}, and used again here." if found else ""
    )
    counted = f"{comparison.parameters:,} parameters, " if comparison.parameters else ""
    sizes = f"{comparison.preset}{_replaced(comparison)}; {counted}"
    limits = {each.case.memory_limit for each in comparison.contenders if each.case.memory_limit}
    within = "".join(f" within {limit / 1e9:g} GB of memory" for limit in limits)
    searched = comparison.quantity is LARGEST_BATCH
    instead = f" instead of {comparison.replaced[BATCH]}" if BATCH in comparison.replaced else ""
    sizes += (
        f"the largest batch that trains{within}."
        if searched
        else f"batch {comparison.batch}{instead}{',' if within else ''}{within}."
    )
    return sizes + origin + weights + "".join([*sorted(changing), *groups]) + earlier


def _of_groups(rule: Optimizer) -> Iterator[str]:
    """Yield a sentence for each group of tensors with another learning rate or weight decay."""
    for group in rule.groups:
        rate = f"{group.rate:g} times the learning rate" if group.rate != 1 else ""
        decay = f"{group.decay:g} times the weight decay" if group.decay else "no weight decay"
        what = " and ".join(filter(None, (rate, decay if group.decay != 1 else "")))
        more = f" and {len(group.tensors) - NAMED_TENSORS} more" if len(group.tensors) > NAMED_TENSORS else ""
        yield f" {', '.join(group.tensors[:NAMED_TENSORS])}{more}: {what}."


def _replaced(comparison: Comparison) -> str:
    """Return the sizes, except the batch, that differ from those of the preset."""
    sizes = comparison.contenders[0].case.sizes
    found = [
        f"{name} {sizes[name]} instead of {usual}"
        for name, usual in comparison.replaced.items()
        if name != BATCH and name in sizes  # a record may be damaged
    ]
    return f"; here {listed(found)}" if found else ""


def headline(comparison: Comparison, source: str) -> str:
    """Return which contender is the best on one input, or why there is no verdict."""
    ranking = comparison.rankings[source]
    ranked = [contender for contender in comparison.contenders if contender.case.id in ranking.order]
    measured = [contender.in_text for contender in ranked if source in contender.standings]
    if len(measured) < 2:
        return f"No verdict: {f'only {measured[0]}' if measured else 'no contender'} has a valid, certified result."
    if ranking.rounds_run < 2:
        if comparison.quantity is LARGEST_BATCH:
            return largest_batches.headline([each for each in ranked if source in each.standings])
        return ONE_PROCESS
    if ranking.leader is None or all(ranking.between(ranking.leader, key) is None for key in ranking.order):
        return "No verdict: the contenders have no round in common."
    titles = {contender.case.id: contender.in_text for contender in ranked}
    maintained = {contender.case.id for contender in ranked if contender.maintained}
    return sentences.headline(ranking, titles, comparison.quantity.wording, maintained)


def verdict(comparison: Comparison, source: str) -> str:
    """Return the ranking of one input as a sentence, or what is needed for a verdict."""
    ranking, sentence = comparison.rankings[source], comparison.sentences[source]
    if len(ranking.order) < 2:
        return "A verdict needs two such results. Other results are shown but not used."
    if ranking.rounds_run < 2:
        once = "search" if comparison.quantity is LARGEST_BATCH else "process"
        return f"One {once} gives no interval and no verdict. {comparison.further.once_more(5)}"
    return sentence + "."


def below_headline(comparison: Comparison, source: str) -> str:
    """Return the verdict; empty if the headline is complete: any contender may be the best, and their differences are unknown."""
    ranking = comparison.rankings[source]
    found = answer(ranking) if ranking.verdicts else None
    is_open = found and found.within == math.inf and len(found.candidates) == len(ranking.order)
    return "" if is_open else verdict(comparison, source)


def heading(comparison: Comparison, source: str) -> str:
    """Return the heading of the table of one input."""
    words = port_runs.INPUT if source == "cached" and comparison.origin == port_runs.ORIGIN else INPUTS[source]
    return fill(words, comparison.task)


def of_the_best(quantity: Quantity, contender: str = "") -> str:
    """Return what a ratio refers to: `that of the fastest`, or `the least peak memory of any contender`."""
    if quantity.best == "fastest":
        return f"that of the fastest {contender}".rstrip()
    return f"the {quantity.best_value}" + (f" of any {contender}" if contender else "")


def basis(quantity: Quantity) -> str:
    """Return the ranked quantity, a cost with its price, and which direction is better."""
    at_price = f" at {quantity.price}" if quantity.price else ""
    return f"Ranked by {quantity.label}{at_price}: {'more' if quantity.more_is_better else 'less'} is better."
