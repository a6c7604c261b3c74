"""Data parallel with `DistributedDataParallel`: every rank has all weights, gradients are averaged during the backward pass."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import distributed
from torch.nn.parallel import DistributedDataParallel

from steelyard_worker.frameworks.pytorch.trainer import Trainer
from steelyard_worker.protocol import Refusal

if TYPE_CHECKING:
    from collections.abc import Iterable

    from steelyard_worker.case import Settings
    from steelyard_worker.frameworks.base import Array
    from steelyard_worker.frameworks.pytorch.predictor import Tensors
    from steelyard_worker.network import Network


class Replicated(Trainer):
    """One of several equal modules, which gets a share of every batch."""

    def _spread(self, settings: Settings, sizes: dict[str, Any], network: Network) -> None:
        del settings, sizes, network
        on_cuda = self._device.type == "cuda"
        if on_cuda and any(getattr(module, "sparse", False) for module in self._module.modules()):
            raise Refusal("unsupported", "NCCL averages no sparse gradients.")
        # Gradients are views of what is sent, so that nothing is copied before and after.
        self._parallel = DistributedDataParallel(
            self._module,
            device_ids=[torch.cuda.current_device()] if on_cuda else None,
            gradient_as_bucket_view=True,
        )

    def _forward_and_loss(self, batch: Tensors) -> tuple[Tensors, torch.Tensor]:
        outputs = self._parallel(*[batch[name] for name in self._inputs])
        return outputs, self._loss(outputs, batch)

    def outputs(self, batch: Tensors) -> dict[str, Array]:
        """Forward in inference mode, with the statistics of the first rank."""
        send_from_first(self._module.buffers())
        return super().outputs(batch)

    def state(self) -> dict[str, Array]:
        """Return all tensors, with the statistics of the first rank.

        DistributedDataParallel also sends those to the other ranks, but not before the next forward pass.
        """
        send_from_first(self._module.buffers())
        return super().state()


@torch.no_grad()
def send_from_first(tensors: Iterable[torch.Tensor]) -> None:
    """Give all ranks the values that these tensors have on the first one."""
    for tensor in tensors:
        distributed.broadcast(tensor, 0)
