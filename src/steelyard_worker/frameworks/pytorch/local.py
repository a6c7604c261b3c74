"""Local updates: every rank trains by itself, and `PeriodicModelAverager` averages the weights every few steps."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import distributed
from torch.distributed.algorithms.model_averaging import averagers, utils

from steelyard_worker.frameworks.pytorch.trainer import Trainer

if TYPE_CHECKING:
    from collections.abc import Mapping

    from steelyard_worker.case import Settings
    from steelyard_worker.frameworks.base import Array
    from steelyard_worker.frameworks.pytorch.predictor import Tensors
    from steelyard_worker.network import Network

# Steps from one average to the next, as in the example of PyTorch's documentation.
PERIOD = 4


class Local(Trainer):
    """One of several modules, each of which trains on its share of every batch."""

    def _spread(self, settings: Settings, sizes: dict[str, Any], network: Network) -> None:
        del settings, sizes
        # The first average is after the fourth step; without a warm-up it would be after the first.
        self._averager = averagers.PeriodicModelAverager(PERIOD, warmup_steps=PERIOD - 1)
        self._averaged = [self._named[each.name] for each in network.parameters if each.trainable]

    def step(self, batch: Tensors) -> torch.Tensor:
        """Forward, backward, update; the weights are averaged after every fourth step."""
        loss = super().step(batch)
        self._averager.average_parameters(self._averaged)
        if self._averager.step % PERIOD == 0:
            self._restore_layouts()
        return loss

    def restart(self, weights: Mapping[str, Array]) -> None:
        """Begin again as a single process does, and count the steps to the next average anew."""
        super().restart(weights)
        self._averager.step = 0

    def _restore_layouts(self) -> None:
        """Bring kernels back into the memory format of the run: PyTorch's average stores them in the usual one."""
        for tensor in self._averaged:
            if tensor.dim() == 4:
                tensor.data = tensor.data.contiguous(memory_format=self._layout)

    def outputs(self, batch: Tensors) -> dict[str, Array]:
        """Forward in inference mode with the average of all weights; training continues with each rank's own."""
        own = [tensor.data for tensor in self._averaged]
        utils.average_parameters(iter(self._averaged), distributed.group.WORLD)
        found = super().outputs(batch)
        for tensor, data in zip(self._averaged, own, strict=True):
            tensor.data = data
        return found
