"""Predictions of a classifier that are stored for the metric."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    from steelyard_worker.batches import Batch

# From this number of classes on, top-5 accuracy is also reported, as in ILSVRC.
MANY_CLASSES = 100


def predictions(classes: int) -> Callable[[Batch, Batch], Batch] | None:
    """Return `Network.predictions` of a classifier: with top-5 for many classes, otherwise None, the default."""
    return with_five if classes >= MANY_CLASSES else None


def with_five(outputs: Batch, batch: Batch) -> Batch:
    """`logits` (N, classes) and `label` (N,) -> truth and predicted int32 (N,), among_five int8 (N,).

    The true class is among the five if fewer than five others score higher, or equally high with a lower index.
    """
    logits, truth = outputs["logits"], batch["label"]
    own = np.take_along_axis(logits, truth[:, None].astype(np.int64), axis=1)
    before = np.arange(logits.shape[1]) < truth[:, None]
    better = np.sum((logits > own) | ((logits == own) & before), axis=1)
    # Comparisons with NaN are false, so a NaN score would count as correct.
    five = (better < 5) & ~np.isnan(own[:, 0])
    return {
        "truth": truth.astype(np.int32),
        "predicted": np.argmax(logits, axis=1).astype(np.int32),
        "among_five": five.astype(np.int8),
    }
