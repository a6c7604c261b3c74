"""Profiles in single numbers, with intervals over the profiled processes."""

import math

from steelyard.analysis.model import Comparison, Contender
from steelyard.profiles.quantities import RATE, SHARE, ProfileQuantity
from steelyard.statistics.intervals import Level, level_interval
from steelyard.wording import notation
from steelyard.wording.formatted import NO_VALUE, Formatted

ONE_PROCESS = "[one process]"
ALONE = (
    "One process of each contender was profiled, so these values have no interval and nothing can be judged by them. "
    "Profile more with: steelyard explain --profiles 3 --run {}"
)


def sentence(comparison: Comparison) -> str:
    """Return the share of a step in operations, and their mean length, by contender; empty if none was profiled."""
    profiled = [each for each in comparison.contenders if each.profiles]
    if not profiled:
        return ""
    share, rate = (
        ", ".join(f"{each.title} {formatted(quantity, level(quantity, each)).value}" for each in profiled)
        for quantity in (SHARE, RATE)
    )
    return f"Share of a step in operations on {comparison.group}: {share}. Operations per second of that time: {rate}."


def by_process(quantity: ProfileQuantity, contender: Contender) -> dict[int, float]:
    """Return {number of the profile: value}."""
    return {number: quantity.read(each.breakdown) for number, each in contender.profiles.items()}


def level(quantity: ProfileQuantity, contender: Contender) -> Level | None:
    """Return the mean over the profiled processes of a contender; None without any."""
    return level_interval(list(by_process(quantity, contender).values()))


def formatted(quantity: ProfileQuantity, found: Level | None) -> Formatted:
    """Return a mean with its interval, or with a note that one process has none."""
    if not found:
        return Formatted(NO_VALUE)
    low, high = max(0.0, found.low), min(found.high, quantity.highest)
    if quantity.unit == "%":
        brackets = f"[{low:.1f}, {high:.1f}]" if math.isfinite(found.high) else ONE_PROCESS
        return Formatted(f"{found.value:.1f} %", brackets)
    if not math.isfinite(found.high):
        return Formatted(notation.quantity_text(quantity.unit, found.value).strip(), ONE_PROCESS)
    scale, unit = notation.scaled_unit(quantity.unit, found.value)
    value, brackets = notation.interval(found.value / scale, low / scale, high / scale)
    return Formatted(f"{value} {unit}".strip(), brackets)
