"""Confusion matrices: how often samples of one class were taken for another."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    Counts = np.ndarray[Any, np.dtype[np.int64]]


def counts(truth: np.ndarray[Any, Any], predicted: np.ndarray[Any, Any], most: int) -> Counts:
    """Return how many samples of each class (rows) were predicted as each class (columns), int64 (classes, classes).

    `truth`, `predicted`: integer (samples,), classes from 0; there are as many as either names. ValueError: they do not fit
    together, are no classes, or name more than `most`.
    """
    if truth.shape != predicted.shape or truth.ndim != 1 or not truth.size:
        message = (
            f"true classes of shape {truth.shape} and predicted ones of shape {predicted.shape} do not fit together"
        )
        raise ValueError(message)
    both = np.stack([truth, predicted])
    if not np.issubdtype(both.dtype, np.integer) or both.min() < 0 or both.max() >= most:
        message = f"classes must be whole numbers from 0 to {most - 1}"
        raise ValueError(message)
    size = int(both.max()) + 1
    rows, columns = both.astype(np.int64)
    return np.bincount(rows * size + columns, minlength=size * size).reshape(size, size)
