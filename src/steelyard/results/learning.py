"""What a training has learned, and when: loss and test metric of a trial by step, by epoch and by second of training."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from steelyard.results.trials import Trial
from steelyard.statistics import metrics, survival
from steelyard.statistics.survival import Arrival

Series = np.ndarray[Any, np.dtype[np.float64]]
Unit = Literal["seconds", "epochs", "steps"]


@dataclass(frozen=True)
class Course:
    """One training, epoch by epoch. All values are those at the end of an epoch.

    seconds: of training, without evaluations and all else between blocks. losses: the mean training loss of the epoch. scores:
    name of a score of the test metric -> its value, not a number where the network was not evaluated.
    """

    epochs: tuple[float, ...]
    steps: tuple[float, ...]
    seconds: tuple[float, ...]
    losses: tuple[float, ...]
    scores: dict[str, tuple[float, ...]]

    @property
    def score(self) -> str:
        """The name of the main score; empty where the network was not evaluated after each epoch."""
        return next(iter(self.scores), "")

    def reaches(self, threshold: float, unit: Unit) -> Arrival:
        """Return where the main score first reaches a threshold: between two evaluations. ValueError: there is no score."""
        if not self.scores:
            message = "a training without evaluations reaches no threshold"
            raise ValueError(message)
        better = metrics.more_is_better(self.score)
        places = {"seconds": self.seconds, "epochs": self.epochs, "steps": self.steps}[unit]
        return survival.first_at(self.scores[self.score], places, threshold, better)


def course(trial: Trial) -> Course | None:
    """Return the training of one process; None where it does not train whole epochs. UserError: its losses cannot be read."""
    if not trial.epochs:
        return None
    numbers = tuple(trial.epochs)
    steps = np.cumsum([sum(block.steps for block in blocks) for blocks in trial.epochs.values()])
    seconds = np.cumsum([trial.epochs_ns[number] for number in numbers]) / 1e9
    losses = np.split(trial.losses(trial.blocks[0].input).astype(np.float64)[: steps[-1]], steps[:-1])
    after = {each.epoch: each.scores for each in trial.evaluations if each.epoch}
    names = dict.fromkeys(name for scores in after.values() for name in scores)
    return Course(
        epochs=tuple(map(float, numbers)),
        steps=tuple(map(float, steps)),
        seconds=tuple(seconds.tolist()),
        losses=tuple(float(each.mean()) for each in losses),
        scores={name: tuple(after.get(number, {}).get(name, math.nan) for number in numbers) for name in names},
    )


def courses(trials: Iterable[Trial]) -> list[Course]:
    """Return the trainings of those processes that train whole epochs: rounds or seeds of one contender."""
    return [found for trial in trials if (found := course(trial))]


def arrivals(trainings: Mapping[int, Sequence[Course]], thresholds: Sequence[float], unit: Unit) -> dict[int, Arrival]:
    """Return {seed: where its training reached the thresholds, as the mean over them}, from {seed: the rounds of this seed}.

    This is the only definition of that mean. ValueError: a training has no score.
    """
    return {
        seed: survival.over_rounds(
            [survival.over_thresholds([each.reaches(value, unit) for value in thresholds]) for each in rounds]
        )
        for seed, rounds in trainings.items()
        if rounds
    }


def by_step(trial: Trial, source: str) -> tuple[Series, Series]:
    """Return (seconds of training at the end of each step, its loss) on one input, float64; time between blocks is left out."""
    ends, before = [np.zeros(0)], 0.0
    for block in trial.blocks:
        if block.input == source:
            ends.append(before + np.cumsum(trial.step_times(block)) / 1e9)
            before += block.elapsed_ns / 1e9
    return np.concatenate(ends), trial.losses(source).astype(np.float64)
