"""Values of processes -> intervals: of one contender, and of the ratio of two contenders from paired rounds."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import exp, fsum, isfinite, log, sqrt

from steelyard.statistics.calibration import NoiseFloor

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
    """Value of A divided by value of B; below 1, A has the smaller value."""

    value: float
    low: float
    high: float
    rounds: int


@dataclass(frozen=True)
class LogRatio:
    """Estimate of ln(m_A / m_B) from paired rounds, with the standard error and degrees of freedom of Student's t."""

    mean: float
    standard_error: float
    degrees_of_freedom: float
    rounds: int

    def half_width(self, error: float) -> float:
        """Return half the width of the two-sided interval that misses the truth with probability `error` at one look."""
        return student_quantile(1 - error / 2, self.degrees_of_freedom) * self.standard_error

    def ratio(self, error: float) -> Ratio:
        """Return the interval as a ratio of values."""
        half = min(self.half_width(error), WIDEST_LOG)
        return Ratio(exp(self.mean), exp(self.mean - half), exp(self.mean + half), self.rounds)

    def difference_p(self) -> float:
        """Return the smallest `error` whose interval excludes 0."""
        return self._p(abs(self.mean))

    def equality_p(self, log_delta: float) -> float:
        """Return the smallest `error` whose interval lies within +-log_delta: two one-sided tests."""
        return self._p(log_delta - abs(self.mean))

    def _p(self, margin: float) -> float:
        if self.standard_error == 0:
            return 0.0 if margin > 0 else 1.0
        return min(1.0, 2 * student_tail(margin / self.standard_error, self.degrees_of_freedom))


def location_interval(locations_ns: Sequence[float], error: float = 0.05) -> Location | None:
    """Return the t interval on the log scale over processes; None for fewer than two processes."""
    if len(locations_ns) < 2:
        return None
    mean, variance = _mean_and_variance(_logs(locations_ns))
    count = len(locations_ns)
    found = LogRatio(mean, sqrt(variance / count), count - 1, count).ratio(error)
    return Location(found.value, found.low, found.high, found.rounds)


def paired_log_ratios(a: Rounds, b: Rounds) -> list[float]:
    """Return d_r = ln(m_A / m_B) of the rounds that both finished, ordered by round number."""
    common = sorted(a.keys() & b.keys())
    above, below = _logs([a[number] for number in common]), _logs([b[number] for number in common])
    return [x - y for x, y in zip(above, below, strict=True)]


def estimate_log_ratio(log_ratios: Sequence[float], noise: NoiseFloor | None) -> LogRatio | None:
    """Pool the variance of the rounds with the machine's noise floor; None if there are too few rounds.

    s^2 = (nu0 s_d0^2 + sum (d - mean)^2) / (nu0 + r - 1), with nu0 + r - 1 degrees of freedom. If this pair is noisier
    than the floor, the floor would make the interval too narrow. Its weight is therefore reduced:
    nu0 = nu min(1, s_d0^2 / s_own^2) (a power prior). Simulated misses over ten looks when the
    true noise is 2 / 3 / 5 times the floor: 13 / 14 / 12 % instead of 21 / 30 / 37 %; with a correct floor 4.2 %
    instead of 4.9 %, and a 5 % difference at 0.8 % noise is still found in three rounds in 99.5 % of cases.
    """
    rounds = len(log_ratios)
    own_freedom = rounds - 1
    if rounds == 0 or (noise is None and own_freedom == 0):
        return None
    mean, own_variance = _mean_and_variance(log_ratios)
    prior_variance = noise.s_d0**2 if noise else 0.0
    weight = float(noise.degrees_of_freedom) if noise else 0.0
    if own_variance > prior_variance:
        weight *= prior_variance / own_variance
    freedom = weight + own_freedom
    variance = (weight * prior_variance + own_freedom * own_variance) / freedom
    return LogRatio(mean, sqrt(variance / rounds), freedom, rounds)


def ratio_interval(a: Rounds, b: Rounds, error: float = 0.05, noise: NoiseFloor | None = None) -> Ratio | None:
    """Return the ratio of two contenders' values from their common rounds, for one look at `error`.

    None for fewer than two common rounds (one is enough with a noise floor).
    """
    estimate = estimate_log_ratio(paired_log_ratios(a, b), noise)
    return estimate.ratio(error) if estimate else None


def student_quantile(probability: float, degrees_of_freedom: float) -> float:
    """Return the quantile of Student's t. Uses scipy.special, because importing scipy.stats takes seconds."""
    from scipy.special import stdtrit

    return float(stdtrit(degrees_of_freedom, probability))


def student_tail(value: float, degrees_of_freedom: float) -> float:
    """Return P(t > value) of Student's t, exact far into the tail."""
    from scipy.special import stdtr

    return float(stdtr(degrees_of_freedom, -value))


def _mean_and_variance(values: Sequence[float]) -> tuple[float, float]:
    """Return mean and variance of one or more values (0 for one). Plain Python: a dozen values are too few for NumPy."""
    mean = fsum(values) / len(values)
    return mean, fsum((value - mean) ** 2 for value in values) / max(1, len(values) - 1)


def _logs(values: Sequence[float]) -> list[float]:
    for value in values:
        if not (isfinite(value) and value > 0):
            raise ValueError(f"A measured value must be finite and above zero, not {value}.")
    return [log(value) for value in values]
