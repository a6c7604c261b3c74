"""What a classifier's evaluated batch leaves behind for the scores."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    from steelyard_worker.batches import Batch

# From this many classes on, the field reports top-5 beside top-1 (ILSVRC).
MANY_CLASSES = 100


def predictions(classes: int) -> Callable[[Batch, Batch], Batch] | None:
    """Return what `Network.predictions` of a classifier is: None, the default, where top-5 says nothing."""
    return with_five if classes >= MANY_CLASSES else None


def with_five(outputs: Batch, batch: Batch) -> Batch:
    """`logits` (N, classes) and `label` (N,) -> truth and predicted int32 (N,), among_five int8 (N,).

    A class counts among the five if fewer than five others score higher, or as high and come before it.
    """
    logits, truth = outputs["logits"], batch["label"]
    own = np.take_along_axis(logits, truth[:, None].astype(np.int64), axis=1)
    before = np.arange(logits.shape[1]) < truth[:, None]
    better = np.sum((logits > own) | ((logits == own) & before), axis=1)
    # A score that is no number is above nothing and below nothing: it is never right.
    five = (better < 5) & ~np.isnan(own[:, 0])
    return {
        "truth": truth.astype(np.int32),
        "predicted": np.argmax(logits, axis=1).astype(np.int32),
        "among_five": five.astype(np.int8),
    }
