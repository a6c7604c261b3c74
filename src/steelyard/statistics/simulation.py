"""Comparisons with a known truth, played by the rule that judges the real ones: what it calls, and when."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import exp, sqrt

import numpy as np

from steelyard.statistics.calibration import NoiseFloor, calibrate
from steelyard.statistics.decision import DecisionPlan, Ranking, decide, rounds_wanted

Draw = Callable[[], float]
"""Returns the log noise of one process, another one at every call."""


@dataclass(frozen=True)
class Play:
    """How one simulated comparison went."""

    ranking: Ranking
    """Where it stood when nobody had to run again."""
    called_different: bool
    """At some look, some pair was called faster or slower."""


def play(log_times: Mapping[str, float], draw: Draw, noise: NoiseFloor, plan: DecisionPlan) -> Play:
    """Run rounds of frameworks whose true times are exp(`log_times`), on any one scale, until decided."""
    rounds: dict[str, dict[int, float]] = {key: {} for key in log_times}
    ranking = decide(rounds, noise, plan)
    different = False
    number = 0
    while wanted := sorted(rounds_wanted(ranking)):
        number += 1
        for key in wanted:
            rounds[key][number] = 1e6 * exp(log_times[key] + draw())
        ranking = decide(rounds, noise, plan)
        different |= any(verdict.kind in ("faster", "slower") for verdict in ranking.verdicts)
    return Play(ranking, different)


def played_calibration(draw: Draw, rounds: int = 9) -> NoiseFloor:
    """Return the floor that A/A rounds on this simulated machine would give."""
    return calibrate([draw() - draw() for _ in range(rounds)])


def lognormal_noise(ratio_sd: float, seed: int) -> Draw:
    """Return noise whose ratio of two processes has a log sd of `ratio_sd`."""
    random = np.random.default_rng(seed)
    return lambda: float(random.normal(0.0, ratio_sd / sqrt(2)))


def bootstrapped_noise(log_ratios: list[float], seed: int) -> Draw:
    """Return noise drawn from recorded A/A log ratios, centred and of either sign.

    A record is the noise of two processes, hence over sqrt(2): a ratio of two draws scatters as recorded.
    """
    recorded = np.asarray(log_ratios, dtype=np.float64)
    calibrate(log_ratios)  # Refuses what cannot be noise: too few, or not finite.
    # Taking the mean out costs a degree of freedom: else nine records understate the noise by 6 %.
    recorded = (recorded - recorded.mean()) * sqrt(recorded.size / (recorded.size - 1)) / sqrt(2)
    random = np.random.default_rng(seed)
    return lambda: float(random.choice(recorded) * random.choice((-1.0, 1.0)))
