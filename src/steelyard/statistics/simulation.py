"""Simulated comparisons with a known truth, judged by the same rule as real ones: its verdicts, and after how many rounds."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import exp, sqrt

import numpy as np

from steelyard.statistics.calibration import NoiseFloor, calibrate
from steelyard.statistics.decision import DecisionPlan, Ranking, decide, rounds_wanted

NoiseSource = Callable[[], float]
"""Returns the log noise of one process, a new value at every call."""


@dataclass(frozen=True)
class Simulation:
    """The outcome of one simulated comparison."""

    ranking: Ranking
    """The ranking after the last round."""
    called_different: bool
    """At some look, some pair was judged better or worse."""


def simulate(log_values: Mapping[str, float], sample: NoiseSource, noise: NoiseFloor, plan: DecisionPlan) -> Simulation:
    """Simulate rounds of contenders whose true values are exp(`log_values`), in any one unit, until decided."""
    rounds: dict[str, dict[int, float]] = {key: {} for key in log_values}
    ranking = decide(rounds, noise, plan)
    different = False
    number = 0
    while wanted := sorted(rounds_wanted(ranking)):
        number += 1
        for key in wanted:
            rounds[key][number] = 1e6 * exp(log_values[key] + sample())
        ranking = decide(rounds, noise, plan)
        different |= any(verdict.kind in ("better", "worse") for verdict in ranking.verdicts)
    return Simulation(ranking, different)


def simulated_calibration(sample: NoiseSource, rounds: int = 9) -> NoiseFloor:
    """Return the noise floor that A/A rounds on this simulated machine would give."""
    return calibrate([sample() - sample() for _ in range(rounds)])


def lognormal_noise(ratio_sd: float, seed: int) -> NoiseSource:
    """Return noise for which the log ratio of two processes has standard deviation `ratio_sd`."""
    random = np.random.default_rng(seed)
    return lambda: float(random.normal(0.0, ratio_sd / sqrt(2)))


def bootstrapped_noise(log_ratios: list[float], seed: int) -> NoiseSource:
    """Return noise resampled from recorded A/A log ratios, centred and with random sign.

    A recorded ratio contains the noise of two processes, hence the division by sqrt(2): ratios of two samples then vary
    as recorded. Raises ValueError for fewer than two ratios or a value that is not finite.
    """
    recorded = np.asarray(log_ratios, dtype=np.float64)
    calibrate(log_ratios)  # Checks the ratios.
    # Subtracting the mean costs a degree of freedom: without the correction nine ratios understate the noise by 6 %.
    recorded = (recorded - recorded.mean()) * sqrt(recorded.size / (recorded.size - 1)) / sqrt(2)
    random = np.random.default_rng(seed)
    return lambda: float(random.choice(recorded) * random.choice((-1.0, 1.0)))
