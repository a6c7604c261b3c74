"""Step times of one process -> its median and mean."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Summary:
    """Median and mean of one process's counted steps, in nanoseconds per step."""

    median_ns: float
    mean_ns: float


def summarise(elapsed_ns: Sequence[float] | NDArray[np.generic]) -> Summary:
    """Summarise the counted steps of one process, in nanoseconds; errors as for `series`."""
    samples = series(elapsed_ns)
    return Summary(median_ns=float(np.median(samples)), mean_ns=float(samples.mean()))


def series(elapsed_ns: Sequence[float] | NDArray[np.generic]) -> NDArray[np.float64]:
    """Return the samples as a one-dimensional float64 array.

    Raises ValueError if there is no sample, more than one dimension, or a value that is not finite and above zero.
    """
    samples = np.asarray(elapsed_ns, dtype=np.float64)
    if samples.ndim != 1 or samples.size == 0:
        raise ValueError(f"Step times must be a non-empty one-dimensional series, not of shape {samples.shape}.")
    if not (np.isfinite(samples).all() and samples.min() > 0):
        raise ValueError("Every step time must be finite and above zero.")
    return samples
