"""Data parallel with Horovod: every rank has all weights, and averages each gradient with those of the other ranks."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import horovod.mxnet as hvd
import mxnet as mx

from steelyard_worker.frameworks.mxnet import optimizers
from steelyard_worker.frameworks.mxnet.shares import AveragingTrainer
from steelyard_worker.frameworks.mxnet.stores import Averaged

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mxnet.nd import NDArray

    from steelyard_worker.case import Optimizer
    from steelyard_worker.frameworks.base import Array

# Every average has names of its own: Horovod would wait for ever if ranks used one name for different tensors.
_numbers = itertools.count()


class HorovodTrainer(AveragingTrainer):
    """A rank whose gradients are averaged with those of the others; every rank applies the same update."""

    def _rule(self, optimizer: Optimizer, rates: Array | None, lazy: bool) -> Any:
        rule = optimizers.update_rule(optimizer, self._trained, rates, lazy)
        return Averaged(rule, Average(), list(self._trained.values()))

    def _averages(self, arrays: dict[str, Array]) -> dict[str, Array]:
        placed = [mx.nd.array(array, self._context, array.dtype) for array in arrays.values()]
        Average()(placed)
        return {name: array.asnumpy() for name, array in zip(arrays, placed, strict=True)}


class Average:
    """Replaces arrays by their averages over the ranks, as Horovod's `DistributedTrainer` does with gradients."""

    def __init__(self) -> None:
        self._prefix = f"{next(_numbers)}."

    def __call__(self, arrays: Sequence[NDArray]) -> None:
        """Average in place; the first arrays first, as the next forward pass needs them first."""
        for key, array in enumerate(arrays):
            hvd.allreduce_(array, average=True, name=f"{self._prefix}{key}", priority=-key)


class HorovodReduce:
    """The mean of a buffer over all ranks, in place, by itself."""

    name = "horovod.mxnet.allreduce_"
    mean = True

    def __init__(self, array: Array) -> None:
        self._buffer = mx.nd.array(array)

    def __call__(self) -> None:
        """Average, and wait for the result."""
        hvd.allreduce_(self._buffer, average=True, name="buffer")
        self._buffer.wait_to_read()

    def result(self) -> Array:
        """Copy the buffer to the host."""
        found: Array = self._buffer.asnumpy()
        return found
