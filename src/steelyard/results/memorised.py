"""Detect trainings that have memorised their batch so exactly that no error is left, and how slow their steps then become.

A small batch that is repeated, such as synthetic data, is soon memorised. Gradients are then so small
that float32 has only subnormal numbers for them. Many processors compute with these ten to a hundred times slower; frameworks
that replace them by 0 do not notice.
"""

from collections.abc import Iterable
from statistics import median

import numpy as np

from steelyard.results.trials import Trial

NOTHING = float(np.finfo(np.float32).eps)
"""A loss below this share of the first one has no significant digits left."""
SLOW = 2.0
"""On a machine that is fit for measuring, blocks differ by less than this factor."""


def slowest_block(trials: Iterable[Trial], source: str) -> float | None:
    """Return the ratio of the slowest to the median counted block of these trainings, if it is at least `SLOW`.

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
