"""Numbers as a person reads them: three significant digits, a unit, and an interval where there is one."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from steelyard.report.model import Comparison, Contender

INPUTS = {
    "pipeline": "Training from the framework's own input pipeline",
    "resident": "One synthetic batch that stays on the device: the framework alone",
}
NOTHING = "-"


def describe(comparison: Comparison) -> str:
    """Return what was computed, in one sentence."""
    origin = f" Data: {comparison.origin}" if comparison.origin else ""
    return f"{comparison.preset}; {comparison.parameters:,} parameters, batch {comparison.batch}.{origin}"


def verdict(comparison: Comparison, source: str) -> str:
    """Return the sentence of a comparison."""
    ranking, sentence = comparison.rankings[source], comparison.sentences[source]
    if len(ranking.order) < 2:
        return "There is nothing to compare with: fewer than two certified contenders."
    if ranking.rounds_run < 2:
        return "One process each: no interval can be given, and no verdict. Add --rounds 5."
    return sentence + "."


def duration(nanoseconds: float) -> str:
    """Return a time with three significant digits: `8.21 ms`, `1.40 s`."""
    for limit, unit in ((1e3, "ns"), (1e6, "µs"), (1e9, "ms")):
        if nanoseconds < limit:
            return f"{significant(nanoseconds / limit * 1e3)} {unit}"
    return f"{significant(nanoseconds / 1e9)} s"


def significant(value: float, digits: int = 3) -> str:
    """Return a number with so many significant digits, and thousands separated."""
    if not value or not math.isfinite(value):
        return "0" if not value else "∞"
    decimals = max(0, digits - 1 - math.floor(math.log10(abs(value))))
    return f"{value:,.{decimals}f}"


def seconds(nanoseconds: float | None) -> str:
    """Return a time or nothing."""
    return duration(nanoseconds) if nanoseconds else NOTHING


def median(contender: Contender, source: str) -> str:
    """Return the median step."""
    speed = contender.speeds.get(source)
    return duration(speed.median_ns) if speed else NOTHING


def location(contender: Contender, source: str) -> str:
    """Return the mean step with its interval over processes."""
    speed = contender.speeds.get(source)
    if not speed:
        return NOTHING
    where = speed.location
    if where.processes < 2:
        return f"{duration(where.value_ns)} [one process]"
    scale, unit = (1e9, "s") if where.value_ns >= 1e9 else (1e6, "ms") if where.value_ns >= 1e6 else (1e3, "µs")
    low, high = significant(where.low_ns / scale), significant(where.high_ns / scale)
    return f"{significant(where.value_ns / scale)} [{low}, {high}] {unit}"


def throughput(contender: Contender, source: str, unit: str) -> str:
    """Return samples per second."""
    speed = contender.speeds.get(source)
    return f"{significant(speed.throughput)} {unit}/s" if speed else NOTHING


def ratio(contender: Contender, source: str) -> str:
    """Return the time over the fastest contender's, with its interval."""
    speed = contender.speeds.get(source)
    if not speed:
        return NOTHING
    if contender.proof.state != "certified":
        return "not certified"
    if not speed.ratio:
        return "fastest" if speed.processes else NOTHING
    found = speed.ratio
    return f"{found.value:.2f}x [{found.low:.2f}, {found.high:.2f}]"


def memory(contender: Contender) -> str:
    """Return the peak: of the device where the framework counts it, else of the process."""
    size = contender.peak_device_bytes or contender.peak_resident_bytes
    return f"{size / 2**20:,.0f} MiB" if size else NOTHING


def accuracy(contender: Contender) -> str:
    """Return the share of right answers, and after how many steps."""
    if contender.accuracy is None:
        return NOTHING
    return f"{contender.accuracy:.1%} after {contender.accuracy_steps}"
