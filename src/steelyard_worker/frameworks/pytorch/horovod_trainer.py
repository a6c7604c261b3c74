"""Data parallel with Horovod: every rank has all weights, gradients are averaged during the backward pass."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import horovod.torch as hvd
import torch

from steelyard_worker.frameworks.pytorch.predictor import to_numpy
from steelyard_worker.frameworks.pytorch.trainer import Trainer

if TYPE_CHECKING:
    from steelyard_worker.frameworks.base import Array
    from steelyard_worker.frameworks.pytorch.predictor import Tensors


class HorovodTrainer(Trainer):
    """One of several equal modules, which gets a share of every batch.

    The hooks of Horovod's `DistributedOptimizer` begin to average each gradient as soon as it is there. That class would also
    update, but only by optimizers of PyTorch's own type; here the rule is a single process's, after the averages have arrived.
    """

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        unused = torch.optim.SGD(self._trained.values(), lr=0.0)
        self._exchange = hvd.DistributedOptimizer(unused, named_parameters=self._trained.items())

    def _finish_exchange(self) -> None:
        self._exchange.synchronize()

    def outputs(self, batch: Tensors) -> dict[str, Array]:
        """Forward in inference mode, with the statistics of the first rank."""
        self._take_statistics()
        return super().outputs(batch)

    def state(self) -> dict[str, Array]:
        """Return all tensors, with the statistics of the first rank."""
        self._take_statistics()
        return super().state()

    def _take_statistics(self) -> None:
        hvd.broadcast_parameters(dict(self._module.named_buffers()), root_rank=0)


class HorovodReduce:
    """The mean of a buffer over all ranks, in place, by itself."""

    name = "horovod.torch.allreduce_"
    mean = True

    def __init__(self, array: Array) -> None:
        self._buffer = torch.tensor(array)

    def __call__(self) -> None:
        """Average, and wait for the result."""
        hvd.allreduce_(self._buffer, op=hvd.Average, name="buffer")

    def result(self) -> Array:
        """Copy the buffer to the host."""
        return to_numpy(self._buffer)
