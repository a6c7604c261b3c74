"""The collectives of PyTorch's process group by which its strategies exchange gradients and weights."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import distributed

from steelyard_worker.frameworks.pytorch.predictor import to_numpy

if TYPE_CHECKING:
    from steelyard_worker.frameworks.base import Array


class GroupReduce:
    """The sum of a buffer over the group, in place, as DistributedDataParallel adds up gradients.

    After many calls it is infinite, which takes no longer to add up.
    """

    interface = "torch.distributed.all_reduce"
    mean = False

    def __init__(self, array: Array, device: str) -> None:
        self.name = f"{self.interface} ({distributed.get_backend()})"
        self._scalars, ranks = len(array), distributed.get_world_size()
        # As many scalars for each rank as any needs.
        self._buffer = torch.zeros(ranks * -(-self._scalars // ranks), device=device)
        self._buffer[: self._scalars] = torch.tensor(array, device=device)

    def __call__(self) -> None:
        """Reduce, and wait for the result."""
        self._reduce()
        if self._buffer.is_cuda:
            torch.cuda.synchronize()

    def _reduce(self) -> None:
        distributed.all_reduce(self._buffer)

    def result(self) -> Array:
        """Copy the buffer to the host."""
        return to_numpy(self._buffer[: self._scalars])


class ShardReduce(GroupReduce):
    """The same sum as fully_shard exchanges: every rank adds up its share, and then gets the shares of the others."""

    interface = "torch.distributed.reduce_scatter_tensor and all_gather_into_tensor"

    def __init__(self, array: Array, device: str) -> None:
        super().__init__(array, device)
        self._share = torch.empty(len(self._buffer) // distributed.get_world_size(), device=device)

    def _reduce(self) -> None:
        distributed.reduce_scatter_tensor(self._share, self._buffer)
        distributed.all_gather_into_tensor(self._buffer, self._share)
