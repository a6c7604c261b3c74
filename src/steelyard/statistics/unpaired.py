"""Two runs at different times have no common rounds to pair, so Welch's interval on the log scale is used."""

from collections.abc import Sequence
from math import fsum, log, sqrt

from steelyard.statistics.intervals import LogRatio


def welch(a: Sequence[float], b: Sequence[float]) -> LogRatio | None:
    """Return the estimate of ln(A / B) from positive values of independent processes; None with fewer than two of either.

    Degrees of freedom by Welch and Satterthwaite. The interval does not include drift of the machine between the two
    runs, which cannot be estimated from one run at each time.
    """
    if len(a) < 2 or len(b) < 2:
        return None
    (mean_a, part_a), (mean_b, part_b) = _mean_and_error(a), _mean_and_error(b)
    total = part_a + part_b
    if total == 0:
        return LogRatio(mean_a - mean_b, 0.0, len(a) + len(b) - 2, min(len(a), len(b)))
    freedom = total**2 / (part_a**2 / (len(a) - 1) + part_b**2 / (len(b) - 1))
    return LogRatio(mean_a - mean_b, sqrt(total), freedom, min(len(a), len(b)))


def _mean_and_error(values: Sequence[float]) -> tuple[float, float]:
    """Return the mean of the logs and the square of its standard error."""
    logs = [log(value) for value in values]
    mean = fsum(logs) / len(logs)
    return mean, fsum((each - mean) ** 2 for each in logs) / (len(logs) - 1) / len(logs)
