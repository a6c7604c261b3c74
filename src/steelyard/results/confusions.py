"""The confusion matrix of a contender, from the predictions that its processes recorded."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from steelyard.statistics import confusion
from steelyard_worker import protocol, tensors

if TYPE_CHECKING:
    from collections.abc import Iterable

    from steelyard.results.trials import Trial
    from steelyard.statistics.confusion import Counts

MOST_CLASSES = 100
"""Of more classes there is no matrix: a thousand of them are a million cells for each contender."""
METRIC = "accuracy"
"""The metric of workloads that predict one class of each sample."""


def matrix(trials: Iterable[Trial]) -> Counts | None:
    """Return the sum over the processes that were evaluated, each after its last evaluation.

    Rows are true classes, columns predicted ones, int64 (classes, classes). None for another metric, of more than
    `MOST_CLASSES` classes, and where no predictions are recorded.
    """
    found = [one for trial in trials if trial.job.metric == METRIC and (one := _of(trial)) is not None]
    if not found:
        return None
    size = max(map(len, found))
    return sum((np.pad(one, (0, size - len(one))) for one in found), np.zeros((size, size), np.int64))


def _of(trial: Trial) -> Counts | None:
    if not trial.evaluation or not trial.evaluation.scores:
        return None
    try:
        predictions = tensors.read(protocol.predictions_folder(trial.folder, trial.evaluation.epoch))
        return confusion.counts(predictions["truth"], predictions["predicted"], MOST_CLASSES)
    except (ValueError, KeyError):
        return None
