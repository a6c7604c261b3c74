"""Step times of one process in, its figures out: steps only sharpen the location of their process."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt

import numpy as np
from numpy.typing import NDArray

GAP_WORTH_A_FLAG = 0.01
TUKEY_FENCE = 1.5
LARGEST_AUTOCORRELATION = 0.99


@dataclass(frozen=True)
class Summary:
    """What one process's counted steps say; every time is in nanoseconds per step."""

    count: int
    median_ns: float
    mean_ns: float
    """Total time over steps: the mean that throughput is made of, and the process's location."""
    quantile_05_ns: float
    quantile_25_ns: float
    quantile_75_ns: float
    quantile_95_ns: float
    outliers: int
    """Samples outside Tukey's fences (quartiles -/+ 1.5 interquartile ranges); counted, never removed."""
    autocorrelation: float
    """Of neighbouring samples (lag 1), in [-1, 1]; 0 when there is nothing to correlate."""
    relative_sd: float
    """Of one step, over the mean, inflated by sqrt((1 + rho) / (1 - rho)) for rho > 0: the `s_step` of
    `steps`."""
    mean_median_gap: float
    """mean / median - 1."""

    @property
    def gap_flagged(self) -> bool:
        """Mean and median differ by more than 1 %: a few steps carry much of the time."""
        return abs(self.mean_median_gap) > GAP_WORTH_A_FLAG


def summarise(elapsed_ns: Sequence[float] | NDArray[np.generic], steps_per_sample: int = 1) -> Summary:
    """Summarise the counted samples of one process, each the time of `steps_per_sample` steps (a block).

    `elapsed_ns`: one dimension, at least one sample, in the order measured. Raises ValueError for an empty or
    impossible series. A negative autocorrelation is reported but does not deflate the sd: with few samples it
    is mostly estimation error, and believing it would understate the noise.
    """
    if steps_per_sample < 1:
        raise ValueError(f"A sample holds at least one step, not {steps_per_sample}.")
    samples = series(elapsed_ns) / steps_per_sample
    mean = float(samples.mean())
    q05, q25, q50, q75, q95 = (float(q) for q in np.quantile(samples, (0.05, 0.25, 0.5, 0.75, 0.95)))
    fence = TUKEY_FENCE * (q75 - q25)
    rho = lag_one_autocorrelation(samples)
    return Summary(
        count=samples.size * steps_per_sample,
        median_ns=q50,
        mean_ns=mean,
        quantile_05_ns=q05,
        quantile_25_ns=q25,
        quantile_75_ns=q75,
        quantile_95_ns=q95,
        outliers=int(np.count_nonzero((samples < q25 - fence) | (samples > q75 + fence))),
        autocorrelation=rho,
        relative_sd=_step_sd(samples, rho) * sqrt(steps_per_sample) / mean,
        mean_median_gap=mean / q50 - 1,
    )


def series(elapsed_ns: Sequence[float] | NDArray[np.generic]) -> NDArray[np.float64]:
    """Return the samples as one dimension of float64; ValueError: empty, not finite, not above zero."""
    samples = np.asarray(elapsed_ns, dtype=np.float64)
    if samples.ndim != 1 or samples.size == 0:
        raise ValueError(f"A series of step times has one dimension and a sample, not shape {samples.shape}.")
    if not (np.isfinite(samples).all() and samples.min() > 0):
        raise ValueError("A step time is a finite number of nanoseconds above zero.")
    return samples


def lag_one_autocorrelation(samples: NDArray[np.float64]) -> float:
    """Return rho of neighbouring samples in [-1, 1]; 0 for a constant series or fewer than three samples."""
    if samples.size < 3:
        return 0.0
    centred = samples - samples.mean()
    power = float(centred @ centred)
    return float(centred[1:] @ centred[:-1]) / power if power > 0 else 0.0


def _step_sd(samples: NDArray[np.float64], rho: float) -> float:
    if samples.size < 2:
        return 0.0
    believed = min(max(rho, 0.0), LARGEST_AUTOCORRELATION)
    return float(samples.std(ddof=1)) * sqrt((1 + believed) / (1 - believed))
