"""Whether a training has memorised its batch so exactly that no error is left, and what its steps take from then on.

One batch again and again, as of synthetic data, is soon memorised where it has few samples. Gradients are then so small
that float32 has only subnormal numbers for them. Many processors compute with these ten to a hundred times slower; frameworks
that replace them by 0 do not notice.
"""

from collections.abc import Iterable
from statistics import median

import numpy as np

from steelyard.results.trials import Trial

NOTHING = float(np.finfo(np.float32).eps)
"""A loss that is this share of the first one has no digits left."""
SLOW = 2.0
"""Blocks differ by less than this factor on a machine that is fit for measuring."""


def slowest_block(trials: Iterable[Trial], source: str) -> float | None:
    """Return how many times as long as the median counted block the slowest one of these trainings took, if it is slow.

    None where no block took `SLOW` times as long, or no loss of that training has vanished. Losses are read only of trainings
    with such a block, because there may be many.
    """
    found = [ratio for trial in trials if (ratio := _ratio(trial, source)) >= SLOW and _has_vanished(trial, source)]
    return max(found, default=None)


def _ratio(trial: Trial, source: str) -> float:
    per_step = [block.elapsed_ns / block.steps for block in trial.counted(source) if block.steps]
    return max(per_step) / median(per_step) if per_step else 0.0


def _has_vanished(trial: Trial, source: str) -> bool:
    losses = np.abs(trial.losses(source))
    return bool(len(losses)) and bool((losses[1:] <= NOTHING * losses[0]).any())
