"""The all-reduce of PyTorch's process group, by which DistributedDataParallel averages gradients."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import distributed

from steelyard_worker.frameworks.pytorch.predictor import to_numpy

if TYPE_CHECKING:
    from steelyard_worker.frameworks.base import Array


class GroupReduce:
    """The sum of a buffer over the group, in place. After many calls it is infinite, which takes no longer to add up."""

    mean = False

    def __init__(self, array: Array, device: str) -> None:
        self.name = f"torch.distributed.all_reduce ({distributed.get_backend()})"
        self._buffer = torch.tensor(array, device=device)

    def __call__(self) -> None:
        """Reduce, and wait for the result."""
        distributed.all_reduce(self._buffer)
        if self._buffer.is_cuda:
            torch.cuda.synchronize()

    def result(self) -> Array:
        """Copy the buffer to the host."""
        return to_numpy(self._buffer)
