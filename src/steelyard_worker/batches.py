"""Batches from prepared arrays: batch i is the same in every framework and in every worker process of a loader."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from steelyard_worker import tensors

if TYPE_CHECKING:
    from collections.abc import Iterator

    from steelyard_worker.protocol import Data

    Batch = dict[str, np.ndarray[Any, Any]]
    Cut = dict[str, tuple[tuple[int, str], ...]]

# Synthetic batches that take turns.
TURNS = 3


@dataclass(frozen=True)
class Split:
    """Memory-mapped samples.

    `image`, uint8 (N, C, H, W), is decoded to float32 by the table `lookup` (C, 256); other inputs are returned as stored.
    Batches are cut along the axes in `cut` to a `multiple`, as `Data` has them.
    """

    arrays: dict[str, np.ndarray[Any, Any]]
    lookup: np.ndarray[Any, Any] | None = None
    cut: Cut = field(default_factory=dict)
    multiple: int = 1

    def __len__(self) -> int:
        return len(next(iter(self.arrays.values())))

    def take(self, rows: np.ndarray[Any, Any], part: slice = slice(None)) -> Batch:
        """Return the samples at `rows`, decoded and cut: {input: array (len(rows), ...)}.

        With `part`, only these of the rows are returned, cut as the whole batch is.
        """
        return {name: self._decode(name, self._rows(name, rows, part)) for name in self.arrays}

    def shape(self, rows: np.ndarray[Any, Any]) -> tuple[int, ...]:
        """Return the extents of the batch of `rows` along the axes that are cut."""
        return tuple(each.stop for name in self.cut for each in self._extent(name, rows) if each.stop)

    def _rows(self, name: str, rows: np.ndarray[Any, Any], part: slice) -> np.ndarray[Any, Any]:
        array = self.arrays[name]
        index: Any = (rows[part], *self._extent(name, rows)) if name in self.cut else rows[part]
        found: np.ndarray[Any, Any] = array[index]
        return found

    def _extent(self, name: str, rows: np.ndarray[Any, Any]) -> list[slice]:
        """Return how much of each axis of an array is taken, without the batch axis: at least one place."""
        extents = self.arrays[name].shape[1:]
        found = [slice(None)] * len(extents)
        for axis, length in self.cut[name]:
            longest = max(1, int(self.arrays[length][rows].max()))
            found[axis] = slice(min(extents[axis], -(-longest // self.multiple) * self.multiple))
        return found

    def _decode(self, name: str, rows: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        if name != "image" or self.lookup is None:
            return np.ascontiguousarray(rows)
        decoded = np.empty(rows.shape, np.float32)
        for channel, table in enumerate(self.lookup):
            np.take(table, rows[:, channel], out=decoded[:, channel])
        return decoded


@dataclass(frozen=True)
class Source:
    """The training batches in the order of the run: step i takes rows order[i % len(order)] (int32).

    `part`: which rows of each batch are taken, where a batch is shared among processes.
    """

    split: Split
    order: np.ndarray[Any, Any]
    part: slice = field(default_factory=lambda: slice(None))

    @property
    def steps_per_epoch(self) -> int:
        """Number of whole batches in one pass over the training split."""
        return len(self.split) // int(self.order.shape[1])

    def batch(self, step: int) -> Batch:
        """Return the batch of step `step`, counted from 0."""
        return self.split.take(self.order[step % len(self.order)], self.part)

    def shapes(self, steps: range) -> set[tuple[int, ...]]:
        """Return the different shapes of the batches of these steps; all are equal where batches are not cut."""
        return {self.split.shape(self.order[step % len(self.order)]) for step in steps}


class Steps:
    """The training batches as a sequence for a framework's own loader: item i is the whole batch of step i.

    Because an item is a whole batch, the order of the run is preserved with any number of worker processes.
    """

    def __init__(self, source: Source) -> None:
        self._source = source

    def __len__(self) -> int:
        return len(self._source.order)

    def __getitem__(self, step: int) -> Batch:
        return self._source.batch(int(step))


def open_source(data: Data) -> Source:
    """Open the training split and its order, memory-mapped."""
    order = tensors.read(Path(data.order))["order"]
    return Source(_open_split(data, "train"), order)


def evaluation_batches(data: Data, batch: int) -> Iterator[Batch]:
    """Yield the test split in order, in whole batches; an incomplete last batch is dropped (P-52)."""
    split = _open_split(data, "test")
    count = min(len(split), data.evaluation_limit or len(split))
    for start in range(0, count - batch + 1, batch):
        yield split.take(np.arange(start, start + batch))


def synthetic_batch(data: Data, samples: int = 0) -> Batch:
    """Return the seeded synthetic batch, cut as batches of prepared samples are.

    With `samples`, it has that many, which are repeated if there are fewer.
    """
    split = Split(tensors.read(Path(data.synthetic)), None, data.cut, data.multiple)
    return split.take(np.arange(samples or len(split)) % len(split))


def synthetic_batches(data: Data, samples: int = 0) -> list[Batch]:
    """Return the synthetic batch with its rows rolled by 0, 1 and 2 places; as many as it has rows, if these are fewer.

    They take turns where a batch that lies on the device is timed, so that work cannot be left out because the last batch was
    the same one. All have the same shapes, and the same samples in another order. `samples`: as of `synthetic_batch`.
    """
    return rolled(synthetic_batch(data, samples))


def rolled(batch: Batch) -> list[Batch]:
    """Return a batch with its rows rolled by 0, 1 and 2 places; as many as it has rows, if these are fewer."""
    rows = len(next(iter(batch.values())))
    return [{name: np.roll(array, places, 0) for name, array in batch.items()} for places in range(min(TURNS, rows))]


class Turns:
    """Placed batches that take turns without end; each is an object of its own. `placed`: one turn of them."""

    def __init__(self, placed: list[Any]) -> None:
        self.placed = placed
        self._next = itertools.cycle(placed)

    def __iter__(self) -> Turns:
        return self

    def __next__(self) -> Any:
        return next(self._next)


def _open_split(data: Data, name: str) -> Split:
    stored = tensors.read(Path(data.prepared))
    arrays = {key.split("/", 1)[1]: array for key, array in stored.items() if key.startswith(name + "/")}
    return Split(arrays, stored.get("lookup"), data.cut, data.multiple)
