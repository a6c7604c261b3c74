"""Numbers as text: three significant digits, and in an interval as many as its width justifies."""

import math


def duration(nanoseconds: float) -> str:
    """Return a duration with three significant digits: `8.21 ms`, `1.40 s`."""
    scale, unit = time_unit(nanoseconds)
    return f"{significant(nanoseconds / scale)} {unit}"


def change(nanoseconds: float) -> str:
    """Return a difference of two durations with its sign: `+1.20 ms`."""
    return f"{'-' if nanoseconds < 0 else '+'}{duration(abs(nanoseconds))}"


def significant(value: float, digits: int = 3) -> str:
    """Return a number with `digits` significant digits and thousands separators."""
    if not value or not math.isfinite(value):
        return "0" if not value else "∞"
    return f"{value:,.{_decimals(value, digits)}f}"


def interval(value: float, low: float, high: float) -> tuple[str, str]:
    """Return value and `[low, high]` with equal decimals: as many as the width justifies, at most five digits."""
    half = (high - low) / 2
    justified = -math.floor(math.log10(half)) if half > 0 and math.isfinite(half) else 0
    decimals = max(_decimals(value, 3), min(justified, _decimals(value, 5)))
    return f"{value:,.{decimals}f}", f"[{low:,.{decimals}f}, {high:,.{decimals}f}]"


def time_unit(nanoseconds: float) -> tuple[float, str]:
    """Return the unit for a duration as (its nanoseconds, its name)."""
    for scale, unit in ((1e9, "s"), (1e6, "ms"), (1e3, "µs")):
        if nanoseconds >= 0.9995 * scale:
            return scale, unit
    return 1.0, "ns"


def _decimals(value: float, digits: int) -> int:
    exponent = int(f"{value:.{digits - 1}e}".partition("e")[2]) if value and math.isfinite(value) else digits - 1
    return max(0, digits - 1 - exponent)


def quantity_text(unit: str, value: float) -> str:
    """Return a value in its unit as a person reads it: times and sizes scaled, everything else with three digits."""
    scale, shown = scaled_unit(unit, value)
    number = f"{value / scale:,.0f}" if unit == "bytes" else significant(value / scale)
    return f"{number} {shown}".rstrip()


def data_size(size: float) -> str:
    """Return bytes with three significant digits, in the decimal units of networks: `1.01 MB`."""
    for scale, unit in ((1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if size >= 0.9995 * scale:
            return f"{significant(size / scale)} {unit}"
    return f"{size:.0f} B"


def prefixed(value: float) -> str:
    """Return a number with three digits and the prefix of its unit: `12.3 G`."""
    for scale, prefix in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= 0.9995 * scale:
            return f"{significant(value / scale)} {prefix}"
    return f"{significant(value)} "


COSTS = ("per step", "per batch")
"""Units of costs end with one of these. Texts show the cost of a million of them, in the currency alone."""


def scaled_unit(unit: str, value: float) -> tuple[float, str]:
    """Return the unit in which a person reads a value, as (its size in `unit`, its name)."""
    if unit == "ns":
        return time_unit(value)
    if unit == "bytes":
        return 2.0**20, "MiB"
    for one in COSTS:
        if unit.endswith(one):
            return 1e-6, unit.removesuffix(one).strip()
    return 1.0, unit
