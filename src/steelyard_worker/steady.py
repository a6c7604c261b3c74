"""Detection of the steady state from the times of short blocks, and the optimal number of counted steps. Pure."""

from __future__ import annotations

import math
from statistics import fmean, median_low
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

WINDOW = 4
"""Most blocks in one of the two windows that are compared."""
GAIN = 0.05
"""A process that still gets faster by this much from one window to the next is not warm."""
# The standard deviation of a normal distribution over its median absolute deviation.
NORMAL = 1.4826


def is_steady(block_ns: Sequence[float]) -> bool:
    """Return whether a process has stopped getting faster, from the times of its blocks (any unit, equal numbers of steps).

    The last two windows are compared, as in pyperf's warm-up test: the newer one may be faster by 5 %, or by what the noise
    explains, which is two standard errors of the difference. A fixed limit alone is met by chance on a noisy machine, and
    then the warm-up takes most of the time. The noise comes from second differences, so that a trend is no part of it.
    """
    width = min(WINDOW, len(block_ns) // 2)
    if not width:
        return False
    recent = block_ns[-2 * width :]
    old, new = fmean(recent[:width]), fmean(recent[width:])
    return old - new <= max(GAIN * old, 2 * _noise(recent) * math.sqrt(2 / width))


def counted_steps(start_s: float, step_s: float, noise_ratio: float, low: int, high: int) -> int:
    """Return the cheapest number of steps per process for a given precision.

    Kalibera & Jones 2013: n = sqrt((cost of a start / cost of a step) * (s_step / s_process)^2), clipped to [low, high].
    """
    optimum = math.ceil(math.sqrt(start_s / step_s) * noise_ratio)
    return max(low, min(high, optimum))


def block_steps(step_s: float, min_s: float, min_steps: int) -> int:
    """Return the smallest number of steps whose block lasts at least `min_s`, and is at least `min_steps`."""
    return max(min_steps, math.ceil(min_s / step_s))


def turns(start_s: float, block_s: float, most: int) -> int:
    """Return in how many blocks a process counts at least where contenders take turns.

    More turns average more of the machine's drift. They may take half as long as the start, which is paid for each process.
    """
    return max(1, min(most, math.floor(start_s / 2 / block_s)))


def _noise(values: Sequence[float]) -> float:
    """Return the standard deviation around a straight trend; 0 for fewer than three values.

    The lower median of second differences: a slow block, such as one with a compilation, hardly increases it.
    """
    bends = [abs(a - 2 * b + c) for a, b, c in zip(values, values[1:], values[2:], strict=False)]
    return NORMAL * median_low(bends) / math.sqrt(6) if bends else 0.0
