"""Is a series of step times constant? Its changepoints, a label, and their effect on the mean."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import log, sqrt
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from steelyard.statistics.summaries import series

Label = Literal["flat", "warm-up", "slowdown", "unstable"]
Floats = NDArray[np.float64]

MOST_POINTS = 500
"""Longer series are averaged into this many blocks before the analysis, which then takes a few milliseconds."""
SAME_LEVEL = 0.005
"""Segments whose means differ by less than 0.5 % count as one level."""
LEAST_SEGMENT = 3
SHORTEST_STATE = 0.1
SHIFT_WORTH_A_LABEL = 0.01
MAD_TO_SD = 1.4826
MOST_CORRELATED = 0.8
TRIMMED_POWER = 0.4377
"""Mean of the 80 % smallest squares of a standard normal: P(chi^2_3 < q) / 0.8 at P(chi^2_1 < q) = 0.8."""


@dataclass(frozen=True)
class SeriesLabel:
    """How the counted samples of one process changed over time."""

    label: Label
    """warm-up: ends on its fastest level; slowdown: ends on a slower level; unstable: changes in the last quarter."""
    changepoint: int | None
    """Index of the first sample of the last level (accurate to one block); None if flat."""
    shift: float
    """Mean of all samples / mean of the last level - 1; if unstable, the mean of the level that gives the largest shift.

    A level that is shorter than a tenth of the series is a disturbance, not a state of the process, so it is left out.
    """

    @property
    def moves_mean(self) -> bool:
        """The change shifts the reported mean by more than 1 %, so the user is warned."""
        return abs(self.shift) > SHIFT_WORTH_A_LABEL


def series_label(elapsed_ns: Sequence[float] | NDArray[np.generic]) -> SeriesLabel:
    """Label a series by its changepoints: flat, warm-up, slowdown, or unstable (changes in the last quarter).

    `elapsed_ns`: as for `summaries.series`, in the order measured. Spikes are clipped before the analysis, so that one
    late step is no changepoint; the shift is computed from the original samples. Fewer than 12 samples
    are too few to judge and count as flat. A million samples take about 0.15 s.
    Source: the classes of Barrett et al. 2017, "Virtual machine warmup blows hot and cold".
    """
    samples = series(elapsed_ns)
    clipped = _clipped(samples)
    edges = np.linspace(0, samples.size, min(samples.size, MOST_POINTS) + 1).astype(np.int64)
    points = np.add.reduceat(clipped, edges[:-1]) / np.diff(edges)
    cuts = [0, *edges[changepoints(points, long_run_variance(points))].tolist(), samples.size]
    levels = [float(clipped[start:stop].mean()) for start, stop in pairwise(cuts)]
    away = [abs(level / levels[-1] - 1) > SAME_LEVEL for level in levels]
    if not any(away):
        return SeriesLabel("flat", None, 0.0)
    steady = int(cuts[len(away) - away[::-1].index(True)])
    if steady > 0.75 * samples.size:
        return SeriesLabel("unstable", steady, max((_shift(samples, part) for part in _states(samples, cuts)), key=abs))
    label: Label = "warm-up" if levels[-1] <= min(levels) * (1 + SAME_LEVEL) else "slowdown"
    return SeriesLabel(label, steady, _shift(samples, float(samples[steady:].mean())))


def _states(samples: Floats, cuts: list[int]) -> list[float]:
    """Return the means of all levels but the short ones, which may be states of the process; the longest is always included."""
    lengths = [stop - start for start, stop in pairwise(cuts)]
    least = min(SHORTEST_STATE * samples.size, max(lengths))
    return [float(samples[start:stop].mean()) for start, stop in pairwise(cuts) if stop - start >= least]


def _shift(samples: Floats, steady_mean: float) -> float:
    return float(samples.mean()) / steady_mean - 1


def changepoints(points: Floats, noise: float) -> list[int]:
    """Return the changepoints of the mean by the algorithm PELT: the index of the first point of every new level.

    `noise`: long-run variance of one point. Squared-error cost. The penalty, 4 ln n times the noise, is larger for
    short series, because their noise estimate is less certain. Source: Killick, Fearnhead and Eckley 2012, "Optimal detection
    of changepoints with a linear computational cost".
    """
    if points.size < 4 * LEAST_SEGMENT:
        return []
    least = max(LEAST_SEGMENT, points.size // 50)
    floor = (1e-6 * float(points.mean())) ** 2
    return _pelt(points, 4 * (1 + 8 / points.size) * log(points.size) * max(noise, floor), least)


def _pelt(points: Floats, penalty: float, least: int) -> list[int]:
    size = points.size
    centred = points - points.mean()
    sums = np.concatenate(([0.0], np.cumsum(centred)))
    squares = np.concatenate(([0.0], np.cumsum(centred**2)))
    best = np.full(size + 1, np.inf)
    best[0] = -penalty
    previous = np.zeros(size + 1, dtype=np.int64)
    starts = np.zeros(1, dtype=np.int64)
    for stop in range(least, size + 1):
        cost = squares[stop] - squares[starts] - (sums[stop] - sums[starts]) ** 2 / (stop - starts)
        total = best[starts] + cost
        choice = int(total.argmin())
        best[stop] = total[choice] + penalty
        previous[stop] = starts[choice]
        starts = starts[total <= best[stop]]
        if (added := stop - least + 1) >= least:
            starts = np.append(starts, added)
    cuts = []
    stop = size
    while (stop := int(previous[stop])) > 0:
        cuts.append(stop)
    return cuts[::-1]


def _clipped(samples: Floats) -> Floats:
    """Clip each sample to three standard deviations around its running median of five: removes spikes, keeps levels."""
    if samples.size < 4 * LEAST_SEGMENT:
        return samples
    padded = np.pad(samples, 2, mode="edge")
    a, b, c, d, e = (padded[shift : shift + samples.size] for shift in range(5))
    # The median of five by minima and maxima: sorting a million windows would take most of the report's time.
    high_low = np.maximum(np.minimum(a, b), np.minimum(c, d))
    low_high = np.minimum(np.maximum(a, b), np.maximum(c, d))
    around = np.maximum(np.minimum(high_low, low_high), np.minimum(np.maximum(high_low, low_high), e))
    reach = 3 * MAD_TO_SD * float(np.median(np.abs(np.diff(samples)))) / sqrt(2)
    return np.clip(samples, around - reach, around + reach)


def long_run_variance(points: Floats) -> float:
    """Return n times the variance of a mean of n autocorrelated points.

    Estimated from differences, so that changes of level do not count as noise.

    For a first-order process, differences at lag 1 have variance 2 s^2 (1 - rho), at lag 2 2 s^2 (1 - rho^2).
    """
    if points.size < 4 * LEAST_SEGMENT or (near := _difference_power(points, 1)) == 0:
        return 0.0
    far = _difference_power(points, 2)
    rho = min(max(far / near - 1, 0.0), MOST_CORRELATED)
    return near / 2 / (1 - rho) * (1 + rho) / (1 - rho)


def _difference_power(points: Floats, lag: int) -> float:
    """Return the variance of lagged differences of normal points, estimated from the smallest 80 % of their squares."""
    squares = np.sort((points[lag:] - points[:-lag]) ** 2)
    smallest = squares[: int(0.8 * squares.size)]
    return float(smallest.mean()) / TRIMMED_POWER
