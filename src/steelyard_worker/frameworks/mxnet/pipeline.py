"""Gluon's DataLoader over whole batches, in the order of the run."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any

from mxnet import Context, nd
from mxnet.gluon.data import DataLoader, Dataset

if TYPE_CHECKING:
    from collections.abc import Iterator

    from steelyard_worker.batches import Batch, Source
    from steelyard_worker.frameworks.mxnet.training import Trainer

# The engine accepts steps as fast as Python issues them, and every queued step keeps its batch in memory.
QUEUED_STEPS = 4


class Steps(Dataset):
    """Item i is the whole batch of step i."""

    def __init__(self, source: Source) -> None:
        self._source = source

    def __len__(self) -> int:
        return len(self._source.order)

    def __getitem__(self, step: int) -> Batch:
        return self._source.batch(step)


def only(samples: list[Batch]) -> Batch:
    """Make a batch of the one item that is a whole batch already."""
    return samples[0]


def only_shared(samples: list[Batch]) -> dict[str, Any]:
    """Do the same in a loader process: arrays travel to the trainer in shared memory, as in Gluon's own batchify."""
    shared = Context("cpu_shared", 0)
    return {name: nd.array(array, shared, array.dtype) for name, array in samples[0].items()}


def feed(trainer: Trainer, source: Source, workers: int) -> Iterator[Any]:
    """Yield placed batches for ever, never more than QUEUED_STEPS steps ahead of the engine."""
    steps = Steps(source)
    loader = DataLoader(
        steps, batch_sampler=[[step] for step in range(len(steps))], batchify_fn=only_shared if workers else only,
        num_workers=workers,
    )  # fmt: skip
    issued: deque[Any] = deque()
    while True:
        for batch in loader:
            yield trainer.put(batch)
            issued.append(trainer.latest)
            if len(issued) > QUEUED_STEPS:
                issued.popleft().wait_to_read()
