"""Two runs at different times have no common rounds to pair, so Welch's interval on the log scale is used."""

from collections.abc import Sequence
from math import hypot

from steelyard.statistics.intervals import LogRatio, logs, mean_and_error


def welch(a: Sequence[float], b: Sequence[float]) -> LogRatio | None:
    """Return the estimate of ln(A / B) from positive values of independent processes; None with fewer than two of either.

    Degrees of freedom by Welch and Satterthwaite. The interval does not include drift of the machine between the two
    runs, which cannot be estimated from one run at each time.
    """
    if len(a) < 2 or len(b) < 2:
        return None
    (mean_a, error_a), (mean_b, error_b) = mean_and_error(logs(a)), mean_and_error(logs(b))
    error = hypot(error_a, error_b)
    share = (error_a / error) ** 2 if error else 0.5
    freedom = 1 / (share**2 / (len(a) - 1) + (1 - share) ** 2 / (len(b) - 1))
    return LogRatio(mean_a - mean_b, error, freedom, min(len(a), len(b)))
