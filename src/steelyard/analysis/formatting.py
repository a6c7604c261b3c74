"""Numbers and sentences for page and terminal: a value with its unit, and its interval if it has one."""

import math
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from steelyard.analysis import largest_batch as largest_batches
from steelyard.analysis.model import Comparison, Contender, location_of
from steelyard.analysis.scaling import Share
from steelyard.results.quantities import LARGEST_BATCH, PROCESS, Quantity
from steelyard.statistics import metrics, sentences
from steelyard.statistics.answer import answer, is_wide
from steelyard.statistics.intervals import Ratio
from steelyard.statistics.sentences import factor_digits, listed, percent
from steelyard.wording.notation import duration, interval, quantity_text, scaled_unit
from steelyard.wording.task_words import fill

INPUTS = {
    "pipeline": "{Task} with the framework's own input pipeline",
    "cached": "{Task} on one cached batch of synthetic data, without an input pipeline",
    "process": "One value per process",
}
"""Input -> heading of its table, with the words of the task."""
EPOCHS = "Whole epochs"
PHASES = "Peak memory by phase"
SHORT_INPUTS = {"pipeline": "own input pipeline", "cached": "cached batch", "process": "whole process"}
CERTIFICATES = {"certified": "yes", "rejected": "REJECTED", "none": "none"}
INTERVALS = (
    "Ranges in brackets are 95 % confidence intervals, based on how much separate trials differed. With several "
    "frameworks in a table the ranges of ratios are widened, so that the chance of even one wrong verdict in it is 5 % at most "
    "(simulated: up to 3.6 %, and up to 6.2 % where one framework is 100 times as noisy as the others)."
)
RULE = (
    "The verdicts follow the same decision rule as those on the time per {step}, with the same error. A sequential run ends "
    "its rounds by the time per {step}."
)
NO_VALUE = "-"
BATCH = "batch"
"""The name of the size that is always shown."""


@dataclass(frozen=True)
class Formatted:
    """A value as text; `interval` in brackets, empty if there is none."""

    value: str
    interval: str = ""

    def __str__(self) -> str:
        """Return value and interval in one line."""
        return f"{self.value} {self.interval}".strip()


def describe(comparison: Comparison) -> str:
    """Return a few sentences on sizes, data, a changing learning rate, and the earlier run whose rounds are used again."""
    origin = f" Data: {comparison.origin.rstrip('.')}." if comparison.origin else ""
    rules = {contender.case.optimizer for contender in comparison.contenders}
    changing = {
        f" Learning rate: {rule.learning_rate:g}, {rule.schedule.summary}." for rule in rules if rule.schedule.changes
    }
    found = comparison.reused
    earlier = f" Measured {moment(found['created'])} in run {found['run']}, and used again here." if found else ""
    sizes = f"{comparison.preset}{_replaced(comparison)}; {comparison.parameters:,} parameters, "
    limits = {each.case.memory_limit for each in comparison.contenders if each.case.memory_limit}
    within = "".join(f" within {limit / 1e9:g} GB of memory" for limit in limits)
    searched = comparison.quantity is LARGEST_BATCH
    instead = f" instead of {comparison.replaced[BATCH]}" if BATCH in comparison.replaced else ""
    sizes += (
        f"the largest batch that trains{within}."
        if searched
        else f"batch {comparison.batch}{instead}{',' if within else ''}{within}."
    )
    return sizes + origin + "".join(sorted(changing)) + earlier


def _replaced(comparison: Comparison) -> str:
    """Return the sizes, except the batch, that differ from those of the preset."""
    sizes = comparison.contenders[0].case.sizes
    found = [
        f"{name} {sizes[name]} instead of {usual}"
        for name, usual in comparison.replaced.items()
        if name != BATCH and name in sizes  # a record may be damaged
    ]
    return f"; here {listed(found)}" if found else ""


ONE_PROCESS = "No verdict: only one process of each contender was measured."


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
    return fill(INPUTS[source], comparison.task)


def capitalised(text: str) -> str:
    """Return text with a capital first letter."""
    return text[:1].upper() + text[1:]


def of_the_best(quantity: Quantity, contender: str = "") -> str:
    """Return what a ratio refers to: `that of the fastest`, or `the least peak memory of any contender`."""
    if quantity.best == "fastest":
        return f"that of the fastest {contender}".rstrip()
    return f"the {quantity.best_value}" + (f" of any {contender}" if contender else "")


def basis(quantity: Quantity) -> str:
    """Return the ranked quantity, and which direction is better."""
    return f"Ranked by {quantity.label}: {'more' if quantity.more_is_better else 'less'} is better."


def unit_of(comparison: Comparison) -> str:
    """Return the unit of the ranked quantity, with the name of a sample (images, reviews, ...)."""
    return comparison.quantity.unit.replace("samples", comparison.unit)


def mean_step(contender: Contender, source: str) -> Formatted:
    """Return the mean step time with its interval over processes, and the bias that changing step times may cause."""
    speed = contender.speeds[source]
    where = speed.location
    found = _mean("ns", (where.value_ns, where.low_ns, where.high_ns), where.processes)
    if not (speed.label and speed.label.moves_mean):
        return found
    doubt = f"unsteady, may be off by {percent(abs(speed.label.shift))}"
    return replace(found, interval=f"{found.interval}, {doubt}" if found.interval else doubt)


def throughput(comparison: Comparison, contender: Contender, source: str) -> Formatted:
    """Return samples per second with the interval over processes."""
    speed = contender.speeds[source]
    ends = (speed.throughput, speed.throughput_low, speed.throughput_high)
    return _mean(f"{comparison.unit}/s", ends, speed.processes, alone="")


def standing(comparison: Comparison, contender: Contender, source: str) -> Formatted:
    """Return the mean of the ranked quantity with its interval over processes."""
    found = contender.standings[source]
    return _mean(unit_of(comparison), (found.value, found.low, found.high), found.processes)


def over_processes(quantity: Quantity, contender: Contender) -> Formatted:
    """Return the mean over processes of a quantity with one value per process, with its interval."""
    found = location_of(quantity, contender.trials, PROCESS)
    if found is None:
        return Formatted(NO_VALUE)
    return _mean(quantity.unit, (found.value_ns, found.low_ns, found.high_ns), found.processes)


def shapes(contender: Contender, epoch: int, name: str) -> Formatted:
    """Return the number of different batch shapes in an epoch, which is equal in all processes."""
    found = next((each.shapes[epoch] for each in contender.trials if epoch in each.shapes), None)
    return Formatted(f"{getattr(found, name):,}" if found else NO_VALUE)


def _mean(unit: str, span: tuple[float, float, float], processes: int, alone: str = "[one process]") -> Formatted:
    """Return a mean with its interval. `span`: value, lower and upper end; `alone`: the text for one process without interval."""
    if processes < 2:
        return Formatted(quantity_text(unit, span[0]), alone)
    if is_wide(*span[1:]):
        return Formatted(quantity_text(unit, span[0]), sentences.NOT_ENOUGH)
    scale, shown = scaled_unit(unit, span[0])
    value, brackets = interval(*(each / scale for each in span))
    return Formatted(f"{value} {shown}", brackets)


def ratio(comparison: Comparison, contender: Contender, source: str) -> Formatted:
    """Return the ranked quantity's value divided by the best contender's, with its interval."""
    if contender.proof.state != "certified":
        return Formatted(contender.proof.on_purpose or "not certified")
    if contender.above_peak:
        return Formatted("invalid")
    if contender.case.id == comparison.rankings[source].leader:
        return Formatted(comparison.quantity.best)
    found = contender.standings[source].ratio
    return of_ratio(found) if found else Formatted(NO_VALUE)


def probability(value: float | None) -> str:
    """Return a probability in whole percent, which is as fine as the number of draws allows."""
    if value is None:
        return NO_VALUE
    return "<1 %" if value < 0.01 else ">99 %" if value > 0.99 else f"{value * 100:.0f} %"


def of_ratio(found: Ratio) -> Formatted:
    """Return a ratio with its interval, with enough decimals to distinguish it from 1 and from 0."""
    digits = factor_digits(found.low) if found.low > 1 else 2
    if found.high < 1:  # not 1.00 for a value just below 1, nor 0.00 for a small share
        digits = max(factor_digits(1 / found.high), 1 - math.floor(math.log10(found.value)), 2)
    if is_wide(found.low, found.high):
        return Formatted(f"{found.value:.{digits}f}x", sentences.NOT_ENOUGH)
    return Formatted(f"{found.value:.{digits}f}x", f"[{found.low:.{digits}f}, {found.high:.{digits}f}]")


def latency(contender: Contender, quantity: Quantity) -> Formatted:
    """Return a latency with its interval over processes; a dash where too few batches were timed one by one."""
    found = contender.latencies.get(quantity.name)
    if not found:
        return Formatted(NO_VALUE)
    return _mean("ns", (found.value_ns, found.low_ns, found.high_ns), found.processes, alone="")


def duration_or_dash(nanoseconds: float | None) -> Formatted:
    """Return a duration, or a dash if there is none."""
    return Formatted(duration(nanoseconds) if nanoseconds else NO_VALUE)


def memory(contender: Contender) -> Formatted:
    """Return the peak memory: of the device if the framework reports it, otherwise of the process."""
    size = contender.peak_device_bytes or contender.peak_resident_bytes
    return Formatted(quantity_text("bytes", size) if size else NO_VALUE)


def largest_batch(contender: Contender) -> Formatted:
    """Return the largest batch that trained in every round, and the smallest one that did not fit."""
    tried = [(trial.batch, trial.job.schedule.failed_batch) for trial in contender.trials]
    texts = [
        f"{batch:,} [{failed:,} did not fit]" if failed else f"at least {batch:,}"
        for batch, failed in dict.fromkeys(tried)
    ]
    return Formatted(", ".join(texts) or NO_VALUE)


def test_metric(contender: Contender) -> Formatted:
    """Return the main score of the workload's metric on the test split, with the number of training steps before it."""
    found = contender.evaluation
    if found is None or not found.scores:
        return Formatted(NO_VALUE)
    name, value = next(iter(found.scores.items()))
    text = f"{value * 100:.1f} %" if metrics.in_percent(name) else f"{value:.3g}"
    return Formatted(text, f"{name}, step {found.steps:,}")


def share(contender: Contender, source: str) -> Formatted:
    """Return the share of the arithmetic peak measured on this machine."""
    found = contender.speeds[source].share_of_peak
    return Formatted(NO_VALUE if found is None else share_text(found))


def of_share(found: Share | None) -> Formatted:
    """Return a share in percent with its interval."""
    if found is None:
        return Formatted(NO_VALUE)
    if not found.enough:
        return Formatted(percent_text(found.value), sentences.NOT_ENOUGH)
    digits = 1 if found.high - found.low < 0.02 else 0
    ends = f"[{percent_text(found.low, digits)}, {percent_text(found.high, digits)}]"
    return Formatted(percent_text(found.value, digits), ends)


def percent_text(value: float, digits: int = 0) -> str:
    """Return a share in percent with a fixed number of decimals, without the sign of a zero."""
    text = f"{100 * value:.{digits}f}"
    return f"{text.removeprefix('-') if float(text) == 0 else text} %"


def share_text(found: float) -> str:
    """Return a share of a limit as text."""
    return "under 0.1 %" if found < 0.001 else percent(found)


def build(contender: Contender) -> str:
    """Return version, mode and the settings that are not at their defaults and that the title does not name."""
    return ", ".join(filter(None, (contender.version, contender.mode, not_in_title(contender))))


def not_in_title(contender: Contender) -> str:
    """Return the settings outside the title that are not at their defaults or differ between contenders."""
    return ", ".join(each for each in contender.settings if each not in contender.title_parts)


def machine(host: dict[str, Any]) -> str:
    """Return a machine in one line; empty if it was not recorded."""
    if not host:
        return ""
    cores, memory_bytes = host.get("cores_usable"), host.get("memory_bytes")
    parts = [
        host.get("cpu_model"), cores and f"{cores} {'core' if cores == 1 else 'cores'}",
        memory_bytes and f"{memory_bytes / 2**30:.0f} GiB memory", *host.get("gpus", ()), *host.get("npus", ()),
        host.get("system"), "virtual machine" if host.get("virtualised") else "",
    ]  # fmt: skip
    return ", ".join(str(part) for part in parts if part)


def moment(stamp: str) -> str:
    """Return `21 November 2026, 03:58 UTC`."""
    when = datetime.fromisoformat(stamp)
    return f"{when.day} {when:%B %Y, %H:%M} {when.tzname() or ''}".strip()
