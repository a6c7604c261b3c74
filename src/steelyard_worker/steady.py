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
SETTLED_STEPS = 10
"""Warm-up of the second input of a process: it is warm, so only the change of input needs one."""
FEWEST = 4
"""Steps of a warm-up, or counted ones, of a network whose steps take more than a second."""
ENOUGH_S = 5.0
"""Steps that last as long together are enough, and fewer than usual if they are long."""
LONG_BLOCK_S = 1.0
"""A block of fewer steps than usual lasts at least as long, so that its two synchronisations do not show."""
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


def fewest_steps(step_s: float, usual: int) -> int:
    """Return how many steps are enough where `usual` ones are of short steps.

    A long step averages by itself what many short ones average: as many as last five seconds, and no fewer than four.
    """
    return min(usual, max(FEWEST, math.ceil(ENOUGH_S / step_s)))


def block_steps(step_s: float, min_s: float, min_steps: int) -> int:
    """Return the smallest number of steps whose block lasts at least `min_s`, and is at least `min_steps` or lasts a second."""
    return max(math.ceil(min_s / step_s), min(min_steps, math.ceil(LONG_BLOCK_S / step_s)))


def turns(start_s: float, block_s: float, most: int) -> int:
    """Return in how many blocks a process counts at least where contenders take turns.

    More turns average more of the machine's drift. They may take half as long as the start, which is paid for each process.
    """
    return max(1, min(most, math.floor(start_s / 2 / block_s)))


class WarmUp:
    """The blocks of a warm-up: how long the next one is, and whether the process has become steady.

    The first block is one step, which shows how long a block must be. Where a compilation made it slow, later blocks are longer;
    only blocks of the latest length are compared.
    """

    def __init__(self, min_steps: int, most_block_steps: int) -> None:
        self._min_steps, self._most = min_steps, most_block_steps
        self.block = 1
        self.steps = 0
        self.blocks_ns: list[int] = []

    def add(self, step_ns: int) -> None:
        """Add the time per step of a block of `self.block` steps."""
        self.steps += self.block
        longer = block_steps(max(1, step_ns) / 1e9, 0, self._most)
        if longer > self.block:
            self.block, self.blocks_ns = longer, []
        else:
            self.blocks_ns.append(step_ns)

    def is_steady(self) -> bool:
        """Return whether there were enough steps, and the blocks have stopped getting shorter."""
        steps = self.block * len(self.blocks_ns)
        return steps >= fewest_steps(fmean(self.blocks_ns or [1]) / 1e9, self._min_steps) and is_steady(self.blocks_ns)


def _noise(values: Sequence[float]) -> float:
    """Return the standard deviation around a straight trend; 0 for fewer than three values.

    The lower median of second differences: a slow block, such as one with a compilation, hardly increases it.
    """
    bends = [abs(a - 2 * b + c) for a, b, c in zip(values, values[1:], values[2:], strict=False)]
    return NORMAL * median_low(bends) / math.sqrt(6) if bends else 0.0
