"""Two runs at different times: no common rounds to pair, so Welch's interval on the log scale."""

from collections.abc import Sequence
from math import fsum, log, sqrt

from steelyard.statistics.intervals import LogRatio


def welch(a_ns: Sequence[float], b_ns: Sequence[float]) -> LogRatio | None:
    """Return what is known of ln(A / B) from the locations of independent processes; None with fewer than two of either.

    Degrees of freedom by Welch and Satterthwaite. Drift between the two runs is not in the interval: nothing that was
    measured at one time only can tell it.
    """
    if len(a_ns) < 2 or len(b_ns) < 2:
        return None
    (mean_a, part_a), (mean_b, part_b) = _mean_and_error(a_ns), _mean_and_error(b_ns)
    total = part_a + part_b
    if total == 0:
        return LogRatio(mean_a - mean_b, 0.0, len(a_ns) + len(b_ns) - 2, min(len(a_ns), len(b_ns)))
    freedom = total**2 / (part_a**2 / (len(a_ns) - 1) + part_b**2 / (len(b_ns) - 1))
    return LogRatio(mean_a - mean_b, sqrt(total), freedom, min(len(a_ns), len(b_ns)))


def _mean_and_error(values_ns: Sequence[float]) -> tuple[float, float]:
    """Return the mean of the logs and the square of its standard error."""
    logs = [log(value) for value in values_ns]
    mean = fsum(logs) / len(logs)
    return mean, fsum((each - mean) ** 2 for each in logs) / (len(logs) - 1) / len(logs)
