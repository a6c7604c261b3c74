"""Trainings of which the truth is known: seeds that learn at different rates, rounds that repeat them, scores at whole epochs only."""

from __future__ import annotations

from dataclasses import dataclass
from math import exp, log
from statistics import NormalDist

import numpy as np

from steelyard.results.learning import Course

SPREAD, REPEATED = 0.4, 0.01
"""Standard deviations of the logarithm of the rate: of seeds, and of the rounds of one seed."""
THRESHOLD = 0.75


@dataclass(frozen=True)
class Truth:
    """Trainings reach the threshold after exp(N(mean, `SPREAD`)) epochs of `epoch_s` seconds, and end after `epochs`."""

    median_epochs: float = 4.0
    epochs: int = 8
    epoch_s: float = 2.0

    def share(self, seconds: float) -> float:
        """Return the share of all trainings that have reached the threshold by then."""
        return NormalDist(log(self.median_epochs), SPREAD).cdf(log(seconds / self.epoch_s))

    def trainings(self, seeds: int, rounds: int, number: int) -> dict[int, list[Course]]:
        """Return {seed: its rounds}, drawn anew for each number."""
        random = np.random.default_rng([seeds, rounds, number])
        logs = (
            log(self.median_epochs)
            + SPREAD * random.normal(size=(seeds, 1))
            + REPEATED * random.normal(size=(seeds, rounds))
        )
        return {seed: [self._course(exp(each)) for each in row] for seed, row in enumerate(logs.tolist(), 1)}

    def _course(self, arrives: float) -> Course:
        """Return a training whose score is 1 - (1 - threshold) ** (epochs / arrives)."""
        epochs = tuple(map(float, range(1, self.epochs + 1)))
        scores = tuple(1 - (1 - THRESHOLD) ** (epoch / arrives) for epoch in epochs)
        seconds = tuple(self.epoch_s * epoch for epoch in epochs)
        return Course(epochs, epochs, seconds, tuple(1 - each for each in scores), {"accuracy": scores})

    def median_score(self, epoch: int) -> float:
        """Return the median score of all trainings after an epoch: that of the median training."""
        return float(1 - (1 - THRESHOLD) ** (epoch / self.median_epochs))


def covers_share(truth: Truth, seeds: int, rounds: int, count: int) -> float:
    """Return how often the band of the share that has arrived holds the truth; the smallest share over the evaluations."""
    from steelyard.results import learning
    from steelyard.statistics import survival

    places = [truth.epoch_s * (epoch + part) for epoch in range(1, truth.epochs) for part in (0.0, 0.5)]
    hits = np.zeros(len(places))
    for number in range(count):
        arrivals = learning.arrivals(truth.trainings(seeds, rounds, number), [THRESHOLD], "seconds")
        share = survival.share_arrived(list(arrivals.values()))
        for index, place in enumerate(places):
            known = sum(each <= place for each in share.places)
            low, high = (share.low[known - 1], share.high[known - 1]) if known else (0.0, 1.0)
            hits[index] += low <= truth.share(place) <= high
    return float(hits.min() / count)


def covers_median(truth: Truth, seeds: int, rounds: int, count: int) -> float:
    """Return how often the interval of the median holds the true one, of those runs that have a median."""
    from steelyard.results import learning
    from steelyard.statistics import survival

    known = [
        survival.share_arrived(
            list(learning.arrivals(truth.trainings(seeds, rounds, number), [THRESHOLD], "seconds").values())
        ).median
        for number in range(count)
    ]
    true = truth.median_epochs * truth.epoch_s
    held = [each.low <= true <= each.high for each in known if each]
    return sum(held) / len(held)


def covers_curve(truth: Truth, seeds: int, rounds: int, count: int) -> float:
    """Return how often the band of a learning curve holds the median score; the smallest share over the epochs."""
    from steelyard.report.learning import over_seeds

    true = np.array([truth.median_score(epoch) for epoch in range(1, truth.epochs + 1)])
    hits = np.zeros(truth.epochs)
    for number in range(count):
        found = over_seeds(truth.trainings(seeds, rounds, number), lambda course: course.scores["accuracy"])
        assert found.low is not None
        assert found.high is not None
        hits += (found.low <= true) & (true <= found.high)
    return float(hits.min() / count)
