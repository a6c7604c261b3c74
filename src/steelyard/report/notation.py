"""Plain numbers as a person reads them: three significant digits, and as many in an interval as it is worth."""

from __future__ import annotations

import math

HOPELESS = 100.0
"""An interval that reaches this factor away from its value says nothing on that side."""


def duration(nanoseconds: float) -> str:
    """Return a time with three significant digits: `8.21 ms`, `1.40 s`."""
    scale, unit = time_unit(nanoseconds)
    return f"{significant(nanoseconds / scale)} {unit}"


def significant(value: float, digits: int = 3) -> str:
    """Return a number with so many significant digits, and thousands separated."""
    if not value or not math.isfinite(value):
        return "0" if not value else "∞"
    return f"{value:,.{_decimals(value, digits)}f}"


def interval(value: float, low: float, high: float) -> tuple[str, str]:
    """Return value and `[low, high]` with equal decimals: as many as the interval is worth, at most five digits."""
    half = (high - low) / 2
    worth = -math.floor(math.log10(half)) if half > 0 and math.isfinite(half) else 0
    decimals = max(_decimals(value, 3), min(worth, _decimals(value, 5)))
    lower = "0" if low * HOPELESS < value else f"{low:,.{decimals}f}"
    upper = "∞" if high > HOPELESS * value else f"{high:,.{decimals}f}"
    return f"{value:,.{decimals}f}", f"[{lower}, {upper}]"


def time_unit(nanoseconds: float) -> tuple[float, str]:
    """Return the unit a time is told in, and its nanoseconds."""
    for scale, unit in ((1e9, "s"), (1e6, "ms"), (1e3, "µs")):
        if nanoseconds >= 0.9995 * scale:
            return scale, unit
    return 1.0, "ns"


def _decimals(value: float, digits: int) -> int:
    exponent = int(f"{value:.{digits - 1}e}".partition("e")[2]) if value and math.isfinite(value) else digits - 1
    return max(0, digits - 1 - exponent)


def quantity_text(unit: str, value: float) -> str:
    """Return a value in its unit as a person reads it: times and sizes scaled, everything else with three digits."""
    if unit == "ns":
        return duration(value)
    if unit == "bytes":
        return f"{value / 2**20:,.0f} MiB"
    return f"{significant(value)} {unit}"
