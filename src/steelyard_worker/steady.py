"""Detection of the steady state by pyperf's two-window test on step times, and the optimal number of counted steps. Pure."""

from __future__ import annotations

import math
from statistics import fmean, median, quantiles
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

WINDOW = 20


def is_steady(step_ns: Sequence[int]) -> bool:
    """Compare the last two windows of step times, as pyperf does with values.

    Steady if the first value of the older window is not an outlier (above Q3 + 1.5 IQR), the mean moved by -50 %..+10 %
    and the median absolute deviation by at most 10 % of the median, Q1 and Q3 by at most 5 %. With fewer than 2 * WINDOW
    values the windows shrink, to no fewer than 5 values each.
    """
    width = min(WINDOW, len(step_ns) // 2)
    if width < 5:
        return False
    old, new = step_ns[-2 * width : -width], step_ns[-width:]
    old_q1, _, old_q3 = quantiles(old, n=4)
    new_q1, _, new_q3 = quantiles(new, n=4)
    mean_change = fmean(new) / fmean(old) - 1
    return (
        old[0] <= old_q3 + 1.5 * (old_q3 - old_q1)
        and -0.5 <= mean_change <= 0.1
        and abs(_deviation(new) - _deviation(old)) <= 0.1 * median(old)
        and abs(new_q1 / old_q1 - 1) <= 0.05
        and abs(new_q3 / old_q3 - 1) <= 0.05
    )


def counted_steps(start_s: float, step_s: float, noise_ratio: float, low: int, high: int) -> int:
    """Return the cheapest number of steps per process for a given precision.

    Kalibera & Jones 2013: n = sqrt((cost of a start / cost of a step) * (s_step / s_process)^2), clipped to [low, high].
    """
    optimum = math.ceil(math.sqrt(start_s / step_s) * noise_ratio)
    return max(low, min(high, optimum))


def block_steps(step_s: float, min_s: float, min_steps: int) -> int:
    """Return the smallest number of steps whose block lasts at least `min_s`, and is at least `min_steps`."""
    return max(min_steps, math.ceil(min_s / step_s))


def _deviation(values: Sequence[int]) -> float:
    centre = median(values)
    return median(abs(value - centre) for value in values)
