"""Predictions on the test split: small arrays from which the orchestrator computes the metric."""

from __future__ import annotations

from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from steelyard_worker import batches
from steelyard_worker.protocol import ENCODING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from steelyard_worker.batches import Batch
    from steelyard_worker.frameworks.base import Array
    from steelyard_worker.network import Network
    from steelyard_worker.protocol import Job


def predictions(job: Job, network: Network, forward: Callable[[Batch], Batch]) -> tuple[Batch, int]:
    """Return what the metric needs of every test sample, arrays (samples, ...) by name, and the number of samples.

    `forward` returns the outputs for a batch. WrongPredictions: the outputs give none.
    """

    def predict(batch: Batch) -> Batch:
        outputs = forward(batch)
        with _as_wrong("predictions in network.py" if network.predictions else "the metric 'accuracy'"):
            found = {
                name: np.asarray(array) for name, array in (network.predictions or classified)(outputs, batch).items()
            }
        return found | network.write(forward, batch) if network.write else found

    parts = [predict(batch) for batch in batches.evaluation_batches(job.data, job.case.batch)]
    with _as_wrong("the predictions of all batches"):
        found = {name: joined([part[name] for part in parts]) for name in (parts[0] if parts else ())}
    if network.write and parts:
        found["encoding"] = np.fromfile(Path(job.data.prepared) / ENCODING, np.uint8)
    return found, len(parts) * job.case.batch


class WrongPredictions(ValueError):
    """The outputs of the network give no predictions; the message says why."""


@contextmanager
def _as_wrong(what: str) -> Iterator[None]:
    """Distinguish errors of code that turns outputs into predictions from those of the framework, after which no time counts."""
    try:
        yield
    except Exception as error:
        message = f"{what} failed with {type(error).__name__}: {' '.join(str(error).split())}"
        raise WrongPredictions(message) from error


def joined(arrays: Sequence[Array]) -> Array:
    """Return arrays (N, ...) as one; those of batches with lengths of their own are padded at their ends with zeros."""
    if len({array.shape[1:] for array in arrays}) == 1:
        return np.concatenate(arrays)
    extent = np.max([array.shape[1:] for array in arrays], axis=0).astype(int)
    return np.concatenate(
        [
            np.pad(array, [(0, 0), *((0, most - size) for most, size in zip(extent, array.shape[1:], strict=True))])
            for array in arrays
        ]
    )


def classified(outputs: Batch, batch: Batch) -> Batch:
    """Return the true class and the one with the largest logit, int32 (N,)."""
    return {"truth": batch["label"], "predicted": outputs["logits"].argmax(axis=1).astype(np.int32)}
