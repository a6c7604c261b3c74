"""Values as text: numbers with their intervals, shares, moments, machines."""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from steelyard.statistics import sentences
from steelyard.statistics.answer import is_wide
from steelyard.statistics.sentences import factor_digits, percent
from steelyard.wording.notation import duration, interval, quantity_text, scaled_unit

if TYPE_CHECKING:
    from steelyard.statistics.intervals import Ratio

NO_VALUE = "-"


@dataclass(frozen=True)
class Formatted:
    """A value as text; `interval` in brackets, empty if there is none."""

    value: str
    interval: str = ""

    def __str__(self) -> str:
        """Return value and interval in one line."""
        return f"{self.value} {self.interval}".strip()


def of_mean(unit: str, span: tuple[float, float, float], processes: int, alone: str = "[one process]") -> Formatted:
    """Return a mean with its interval. `span`: value, lower and upper end; `alone`: the text for one process without interval."""
    if processes < 2:
        return Formatted(quantity_text(unit, span[0]), alone)
    if is_wide(*span[1:]):
        return Formatted(quantity_text(unit, span[0]), sentences.NOT_ENOUGH)
    scale, shown = scaled_unit(unit, span[0])
    value, brackets = interval(*(each / scale for each in span))
    return Formatted(f"{value} {shown}".rstrip(), brackets)


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


def duration_or_dash(nanoseconds: float | None) -> Formatted:
    """Return a duration, or a dash if there is none."""
    return Formatted(duration(nanoseconds) if nanoseconds else NO_VALUE)


def percent_text(value: float, digits: int = 0) -> str:
    """Return a share in percent with a fixed number of decimals, without the sign of a zero."""
    text = f"{100 * value:.{digits}f}"
    return f"{text.removeprefix('-') if float(text) == 0 else text} %"


def share_text(found: float) -> str:
    """Return a share of a limit as text."""
    return "under 0.1 %" if found < 0.001 else percent(found)


def machine(host: dict[str, Any]) -> str:
    """Return a machine in one line; empty if it was not recorded."""
    if not host:
        return ""
    cores, memory_bytes = host.get("cores_usable"), host.get("memory_bytes")
    parts = [
        host.get("cpu_model"),
        cores and f"{cores} {'core' if cores == 1 else 'cores'}",
        memory_bytes and f"{memory_bytes / 2**30:.0f} GiB memory",
        *host.get("gpus", ()),
        *host.get("npus", ()),
        host.get("system"),
        "virtual machine" if host.get("virtualised") else "",
    ]
    return ", ".join(str(part) for part in parts if part)


def moment(stamp: str) -> str:
    """Return `21 November 2026, 03:58 UTC`."""
    when = datetime.fromisoformat(stamp)
    return f"{when.day} {when:%B %Y, %H:%M} {when.tzname() or ''}".strip()
