"""Gluon's DataLoader over whole batches, in the order of the run."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any

from mxnet import Context, nd
from mxnet.gluon.data import DataLoader

from steelyard_worker.batches import Steps

if TYPE_CHECKING:
    from collections.abc import Iterator

    from steelyard_worker.batches import Batch, Source
    from steelyard_worker.frameworks.mxnet.predictor import Predictor

# The engine accepts steps as fast as Python issues them, and every queued step holds its batch in memory.
QUEUED_STEPS = 4


def only(samples: list[Batch]) -> Batch:
    """Return the only item, which is already a whole batch."""
    return samples[0]


def only_shared(samples: list[Batch]) -> dict[str, Any]:
    """Return the only item from a loader process: in shared memory, as Gluon's own batchify functions do."""
    shared = Context("cpu_shared", 0)
    return {name: nd.array(array, shared, array.dtype) for name, array in samples[0].items()}


def feed(trainer: Predictor, source: Source, workers: int) -> Iterator[Any]:
    """Yield batches on the device without end, at most QUEUED_STEPS steps ahead of the engine."""
    steps = Steps(source)
    loader = DataLoader(
        steps,
        batch_sampler=[[step] for step in range(len(steps))],
        batchify_fn=only_shared if workers else only,
        num_workers=workers,
    )
    issued: deque[Any] = deque()
    while True:
        for batch in loader:
            yield trainer.put(batch)
            issued.append(trainer.latest)
            if len(issued) > QUEUED_STEPS:
                issued.popleft().wait_to_read()
