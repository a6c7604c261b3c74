"""Profiles in single numbers, with intervals over the profiled processes."""

import math
from dataclasses import dataclass

from steelyard.profiles.quantities import QUANTITIES, RATE, SHARE, ProfileQuantity
from steelyard.report import notation
from steelyard.report.formatting import NO_VALUE, Formatted
from steelyard.report.model import Comparison, Contender
from steelyard.statistics.intervals import Level, level_interval

ONE_PROCESS = "[one process]"
ALONE = (
    "One process of each contender was profiled, so these values have no interval and nothing can be judged by them. "
    "Profile more with: steelyard explain --profiles 3 --run {}"
)
CAPTION = "Each value is the mean over the profiled processes, with its 95 % confidence interval. One process has none."


@dataclass(frozen=True)
class Section:
    """A table with one column for every profiled contender: headings, rows that begin with their names, and how to read a row."""

    headings: list[str]
    rows: list[list[str]]
    helps: list[tuple[str, str]]
    caption: str = CAPTION


def section(comparison: Comparison) -> Section | None:
    """Return the table of a comparison; None where no contender was profiled."""
    profiled = [each for each in comparison.contenders if each.profiles]
    if not profiled:
        return None
    rows = [[each.name, *(str(formatted(each, level(each, one))) for one in profiled)] for each in QUANTITIES.values()]
    rows.append(["profiled processes", *(str(len(one.profiles)) for one in profiled)])
    helps = [(each.name, each.help) for each in QUANTITIES.values()]
    return Section(["", *(each.title for each in profiled)], rows, helps)


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
