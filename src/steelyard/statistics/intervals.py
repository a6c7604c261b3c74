"""Values of processes -> intervals: of one contender, and of the ratio of two contenders from paired rounds."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import exp, fsum, inf, isfinite, log, sqrt

WIDEST_LOG = 300.0
"""Largest half width of a log interval: anything wider is meaningless, and exp() of it would overflow."""

Rounds = Mapping[int, float]
"""Round number -> value of one contender in that round: finite, above zero, for example nanoseconds per step."""


@dataclass(frozen=True)
class Location:
    """Geometric mean over processes with its interval, in nanoseconds per step."""

    value_ns: float
    low_ns: float
    high_ns: float
    processes: int


@dataclass(frozen=True)
class Ratio:
    """Value of A divided by value of B, with its interval over `rounds` common rounds; below 1, A has the smaller value."""

    value: float
    low: float
    high: float
    rounds: int


@dataclass(frozen=True)
class Level:
    """Mean over processes of a value that may be 0, with its interval; a single process has the ends -inf and inf."""

    value: float
    low: float
    high: float
    processes: int


@dataclass(frozen=True)
class LogRatio:
    """Estimate of ln(m_A / m_B), with the standard error and degrees of freedom of Student's t."""

    mean: float
    standard_error: float
    degrees_of_freedom: float
    rounds: int

    def ratio(self, error: float) -> Ratio:
        """Return the two-sided interval that misses the truth with probability `error`, as a ratio of values."""
        half = student_quantile(1 - error / 2, self.degrees_of_freedom) * self.standard_error
        half = min(half, WIDEST_LOG)
        return Ratio(exp(self.mean), exp(self.mean - half), exp(self.mean + half), self.rounds)


def location_interval(locations_ns: Sequence[float], error: float = 0.05) -> Location | None:
    """Return the t interval on the log scale over processes, in ns per step; None for fewer than two processes."""
    found = _interval(logs(locations_ns), error)
    return Location(found.value, found.low, found.high, found.rounds) if found else None


def level_interval(values: Sequence[float], error: float = 0.05) -> Level | None:
    """Return the arithmetic mean over processes with its t interval; a single process has no interval; None without processes."""
    if len(values) < 2:
        return Level(values[0], -inf, inf, 1) if values else None
    mean, standard_error = mean_and_error(values)
    half = student_quantile(1 - error / 2, len(values) - 1) * standard_error
    return Level(mean, mean - half, mean + half, len(values))


def ratio_interval(a: Rounds, b: Rounds, error: float = 0.05) -> Ratio | None:
    """Return the t interval of the ratio of two contenders' values; None for fewer than two common rounds."""
    common = sorted(a.keys() & b.keys())
    above, below = logs([a[number] for number in common]), logs([b[number] for number in common])
    return _interval([x - y for x, y in zip(above, below, strict=True)], error)


def logs(values: Sequence[float]) -> list[float]:
    """Return the natural logarithms. Raises ValueError for a value that is not finite and above zero."""
    for value in values:
        if not (isfinite(value) and value > 0):
            raise ValueError(f"A measured value must be finite and above zero, not {value}.")
    return [log(value) for value in values]


def student_quantile(probability: float, degrees_of_freedom: float) -> float:
    """Return the quantile of Student's t. Uses scipy.special, because importing scipy.stats takes seconds."""
    from scipy.special import stdtrit

    return float(stdtrit(degrees_of_freedom, probability))


def mean_and_error(values: Sequence[float]) -> tuple[float, float]:
    """Return the mean of two or more values and its standard error. For a dozen values, plain Python is faster than NumPy."""
    mean = fsum(values) / len(values)
    return mean, sqrt(fsum((value - mean) ** 2 for value in values) / (len(values) - 1) / len(values))


def _interval(values: Sequence[float], error: float) -> Ratio | None:
    if len(values) < 2:
        return None
    return LogRatio(*mean_and_error(values), len(values) - 1, len(values)).ratio(error)
