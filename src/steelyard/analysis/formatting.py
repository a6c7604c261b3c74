"""Values of contenders as text, with their intervals."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from steelyard.analysis.model import location_of
from steelyard.results.quantities import PROCESS
from steelyard.statistics import metrics, sentences
from steelyard.statistics.sentences import percent
from steelyard.wording.formatted import NO_VALUE, Formatted, of_mean, of_ratio, percent_text, share_text
from steelyard.wording.notation import quantity_text

if TYPE_CHECKING:
    from steelyard.analysis.model import Comparison, Contender, Proof
    from steelyard.analysis.scaling import Share
    from steelyard.results.quantities import Quantity

CERTIFICATES = {"certified": "yes", "rejected": "REJECTED", "none": "none"}
EQUAL = "equal"
"""In place of `yes` where a port check has found two models equal."""


def certificate(proof: Proof) -> str:
    """Return the state of a certificate as tables show it."""
    return EQUAL if proof.by_port_check and proof.state == "certified" else CERTIFICATES[proof.state]


def unit_of(comparison: Comparison) -> str:
    """Return the unit of the ranked quantity, with the name of a sample (images, reviews, ...)."""
    return comparison.quantity.unit.replace("samples", comparison.unit)


def mean_step(contender: Contender, source: str) -> Formatted:
    """Return the mean step time with its interval over processes, and the bias that changing step times may cause."""
    speed = contender.speeds[source]
    where = speed.location
    found = of_mean("ns", (where.value_ns, where.low_ns, where.high_ns), where.processes)
    if not (speed.label and speed.label.moves_mean):
        return found
    doubt = f"unsteady, may be off by {percent(abs(speed.label.shift))}"
    return replace(found, interval=f"{found.interval}, {doubt}" if found.interval else doubt)


def throughput(comparison: Comparison, contender: Contender, source: str) -> Formatted:
    """Return samples per second with the interval over processes."""
    speed = contender.speeds[source]
    ends = (speed.throughput, speed.throughput_low, speed.throughput_high)
    return of_mean(f"{comparison.unit}/s", ends, speed.processes, alone="")


def standing(comparison: Comparison, contender: Contender, source: str) -> Formatted:
    """Return the mean of the ranked quantity with its interval over processes."""
    found = contender.standings[source]
    return of_mean(unit_of(comparison), (found.value, found.low, found.high), found.processes)


def over_processes(quantity: Quantity, contender: Contender) -> Formatted:
    """Return the mean over processes of a quantity with one value per process, with its interval."""
    found = location_of(quantity, contender.trials, PROCESS)
    if found is None:
        return Formatted(NO_VALUE)
    return of_mean(quantity.unit, (found.value_ns, found.low_ns, found.high_ns), found.processes)


def shapes(contender: Contender, epoch: int, name: str) -> Formatted:
    """Return the number of different batch shapes in an epoch, which is equal in all processes."""
    found = next((each.shapes[epoch] for each in contender.trials if epoch in each.shapes), None)
    return Formatted(f"{getattr(found, name):,}" if found else NO_VALUE)


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


def latency(contender: Contender, quantity: Quantity) -> Formatted:
    """Return a latency with its interval over processes; a dash where too few batches were timed one by one."""
    found = contender.latencies.get(quantity.name)
    if not found:
        return Formatted(NO_VALUE)
    return of_mean("ns", (found.value_ns, found.low_ns, found.high_ns), found.processes, alone="")


def memory(contender: Contender) -> Formatted:
    """Return the peak memory: of the device if the framework reports it, otherwise of the process."""
    return Formatted(quantity_text("bytes", contender.peak_bytes) if contender.peak_bytes else NO_VALUE)


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


def build(contender: Contender) -> str:
    """Return version, mode and the settings that are not at their defaults and that the title does not name."""
    return ", ".join(filter(None, (contender.version, contender.mode, not_in_title(contender))))


def not_in_title(contender: Contender) -> str:
    """Return the settings outside the title that are not at their defaults or differ between contenders."""
    return ", ".join(each for each in contender.settings if each not in contender.title_parts)
