"""One PyTorch module with its update rule."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from steelyard_worker.frameworks import named_tensors
from steelyard_worker.frameworks.pytorch import layers, optimizers
from steelyard_worker.frameworks.pytorch import settings as process

if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import ModuleType

    from torch import nn

    from steelyard_worker.batches import Batch
    from steelyard_worker.case import Optimizer, Settings
    from steelyard_worker.frameworks.base import Array
    from steelyard_worker.network import Network


class Trainer:
    """One module with its update rule."""

    def __init__(
        self, settings: Settings, implementation: ModuleType, sizes: dict[str, Any], network: Network,
        weights: Mapping[str, Array], optimizer: Optimizer,
    ) -> None:  # fmt: skip
        self._device = torch.device(settings.device)
        self._dtype, self._layout = process.DTYPES[settings.precision], process.LAYOUTS[settings.knobs["layout"]]
        self._inputs, self._loss = implementation.INPUTS, implementation.loss
        with layers.uninitialised():
            self._module: nn.Module = process.placed(implementation.build(sizes), settings).train()
        self._named = implementation.variables(self._module)
        load(self._named, network, weights)
        self._trained = {p.name: self._named[p.name] for p in network.parameters if p.trainable}
        self._rule = optimizers.update_rule(optimizer, self._trained)
        self._forward = process.wrapped(self._forward_and_loss, settings)

    def put(self, batch: Batch) -> dict[str, torch.Tensor]:
        """Copy a canonical batch to the device."""
        return self.place({name: torch.from_numpy(np.ascontiguousarray(array)) for name, array in batch.items()})

    def place(self, batch: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        """Move host tensors to the device: floats in the precision of the run, integers as int64, as labels must be."""
        return {name: self._convert(tensor) for name, tensor in batch.items()}

    def _convert(self, tensor: torch.Tensor) -> torch.Tensor:
        dtype = self._dtype if tensor.is_floating_point() else torch.int64
        if tensor.dim() == 4:
            return tensor.to(self._device, dtype, memory_format=self._layout)
        return tensor.to(self._device, dtype)

    def _forward_and_loss(self, batch: dict[str, torch.Tensor]) -> tuple[dict[str, torch.Tensor], torch.Tensor]:
        # A list: with a generator and a module that breaks its graph, the compiler tries and abandons this frame at every step.
        outputs = self._module(*[batch[name] for name in self._inputs])
        return outputs, self._loss(outputs, batch)

    def step(self, batch: dict[str, torch.Tensor]) -> torch.Tensor:
        """Forward, backward, update; the loss stays on the device."""
        self._rule.zero_grad(set_to_none=True)
        _, loss = self._forward(batch)
        loss.backward()
        self._rule.step()
        return loss.detach()

    def synchronise(self) -> None:
        """Wait for CUDA kernels; on CPU the work has finished when a call returns."""
        if self._device.type == "cuda":
            torch.cuda.synchronize()

    def losses(self, handles: list[torch.Tensor]) -> Array:
        """Read the losses back."""
        return _numpy(torch.stack(handles).float()) if handles else np.empty(0, np.float32)

    def gradients(self, batch: dict[str, torch.Tensor]) -> tuple[dict[str, Array], float, dict[str, Array]]:
        """Forward in training mode and backward."""
        self._rule.zero_grad(set_to_none=True)
        outputs, loss = self._forward(batch)
        loss.backward()
        gradients = {name: _numpy(tensor.grad) for name, tensor in self._trained.items()}
        return {name: _numpy(tensor) for name, tensor in outputs.items()}, loss.item(), gradients

    @torch.inference_mode()
    def outputs(self, batch: dict[str, torch.Tensor]) -> dict[str, Array]:
        """Forward in inference mode."""
        self._module.eval()
        outputs = self._module(*(batch[name] for name in self._inputs))
        self._module.train()
        return {name: _numpy(tensor) for name, tensor in outputs.items()}

    def state(self) -> dict[str, Array]:
        """Return parameters and batch-norm statistics; PyTorch's layouts are the canonical ones."""
        return {name: _numpy(tensor) for name, tensor in self._named.items()}


@torch.no_grad()
def load(named: dict[str, torch.Tensor], network: Network, weights: Mapping[str, Array]) -> None:
    """Copy canonical weights into the tensors; PyTorch's layouts are the canonical ones."""
    own = {name: tuple(tensor.shape) for name, tensor in named.items() if not name.endswith("num_batches_tracked")}
    named_tensors.check(network, own)
    for name in own:
        named[name].copy_(torch.from_numpy(np.array(weights[name])))


def _numpy(tensor: torch.Tensor) -> Array:
    return tensor.detach().cpu().contiguous().numpy()
