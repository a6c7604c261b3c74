"""One PyTorch module with its update rule."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from steelyard_worker import accumulation, dropout
from steelyard_worker.frameworks.pytorch import layers, optimizers, recomputation
from steelyard_worker.frameworks.pytorch import settings as process
from steelyard_worker.frameworks.pytorch.predictor import COUNTER, Predictor, fill, to_numpy

if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import ModuleType

    from steelyard_worker.case import Optimizer, Settings
    from steelyard_worker.frameworks.base import Array
    from steelyard_worker.frameworks.pytorch.predictor import Tensors
    from steelyard_worker.network import Network


class Trainer(Predictor):
    """One module in training mode, with its update rule; `clipping` is how the rule clips gradients where it does."""

    clipping: Any = optimizers.Clipped

    def __init__(
        self,
        settings: Settings,
        implementation: ModuleType,
        sizes: dict[str, Any],
        network: Network,
        weights: Mapping[str, Array],
        optimizer: Optimizer,
        rates: Array | None = None,
    ) -> None:
        super().__init__(settings, implementation, sizes, network, weights)
        self._module.train()
        freeze(self._named, network)
        self._loss = implementation.loss
        if settings.knobs["recomputation"] == recomputation.BLOCKS:
            recomputation.compute_again(self._module, network.blocks, settings)
        self._spread(settings, sizes, network)
        trainable = [each.name for each in network.parameters if each.trainable and each.name in self._named]
        self._trained = {name: self._named[name] for name in trainable}
        sparse = layers.sparse_tensors(self._module)
        self._rule = optimizers.update_rule(optimizer, self._trained, rates, sparse, self.clipping)
        self._forward = process.wrapped(self._forward_and_loss, settings)
        self._reuses_memory = bool(settings.knobs["cuda_graphs"])
        self._drops = settings.knobs["dropout"] == dropout.ON
        self._parts = accumulation.parts_of(settings)

    def _spread(self, settings: Settings, sizes: dict[str, Any], network: Network) -> None:
        """Spread the module over ranks, before its update rule is made; a single process has nothing to do."""

    def _forward_and_loss(self, batch: Tensors) -> tuple[Tensors, torch.Tensor]:
        outputs = self._outputs(batch)
        return outputs, self._loss(outputs, batch)

    def step(self, batch: Tensors) -> torch.Tensor:
        """Forward, backward, update; the loss stays on the device."""
        self._rule.zero_grad(set_to_none=True)
        loss = self._differentiate(batch) if self._parts == 1 else self._add_gradients(batch)
        self._finish_exchange()
        self._rule.step()
        return loss

    def _differentiate(self, batch: Tensors, share: float = 1.0) -> torch.Tensor:
        """Forward and backward, which adds a share of the gradients to those that are there; returns the loss."""
        _, loss = self._forward(batch)
        loss.backward(None if share == 1 else torch.full_like(loss, share))
        # The next run of a CUDA graph writes its loss into the same memory.
        return loss.detach().clone() if self._reuses_memory else loss.detach()

    def _add_gradients(self, batch: Tensors) -> torch.Tensor:
        """Forward and backward of one part of the batch after the other; returns the mean of their losses."""
        samples = len(next(iter(batch.values())))
        parts = accumulation.parts_for(self._parts, samples)
        own = ({name: tensor.chunk(parts)[part] for name, tensor in batch.items()} for part in range(parts))
        return torch.stack([self._differentiate(each, 1 / parts) for each in own]).mean()

    @torch.no_grad()
    def restart(self, weights: Mapping[str, Array]) -> None:
        """Copy weights into the module's own tensors, so that neither the module nor its compiled step is made again."""
        self._fill(weights)
        for name, buffer in self._module.named_buffers():
            if name.endswith(COUNTER):
                buffer.zero_()
        optimizers.forget(self._rule)
        if self._drops:
            torch.manual_seed(dropout.SEED)

    def _fill(self, weights: Mapping[str, Array]) -> None:
        """Copy weights into the tensors that this process has."""
        fill(self._named, weights)

    def losses(self, handles: list[torch.Tensor]) -> Array:
        """Read the losses back."""
        return to_numpy(torch.stack(handles).float()) if handles else np.empty(0, np.float32)

    def gradients(self, batch: Tensors) -> tuple[dict[str, Array], float, dict[str, Array]]:
        """Forward in training mode and backward."""
        self._rule.zero_grad(set_to_none=True)
        outputs, loss = self._forward(batch)
        loss.backward()
        self._finish_exchange()
        gradients = {name: to_numpy(tensor.grad.to_dense()) for name, tensor in self._trained.items()}
        return {name: to_numpy(tensor) for name, tensor in outputs.items()}, loss.item(), gradients

    def _finish_exchange(self) -> None:
        """Wait until gradients have been exchanged with other ranks, where that does not happen in the backward pass."""

    @torch.inference_mode()
    def outputs(self, batch: Tensors) -> dict[str, Array]:
        """Forward in inference mode; not compiled, because compiling takes longer than an evaluation."""
        self._module.eval()
        outputs = self._outputs(batch)
        self._module.train()
        return {name: to_numpy(tensor) for name, tensor in outputs.items()}


def freeze(named: Tensors, network: Network) -> None:
    """Stop the gradients of what network.py calls frozen, so that nothing is differentiated for it.

    A tensor that is a part of another one keeps its gradient: PyTorch can only stop that of the whole.
    """
    for parameter in network.parameters:
        tensor = named.get(parameter.name)
        if not parameter.trainable and tensor is not None and tensor.is_leaf:
            tensor.requires_grad_(False)
