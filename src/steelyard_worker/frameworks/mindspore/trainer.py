"""One MindSpore cell with its update rule."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import mindspore
import numpy as np
from mindspore import Tensor

from steelyard_worker import accumulation, dropout
from steelyard_worker.frameworks.mindspore import cells, layers, optimizers
from steelyard_worker.frameworks.mindspore.predictor import Predictor, to_numpy

if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import ModuleType

    from steelyard_worker.case import Optimizer, Settings
    from steelyard_worker.frameworks.base import Array
    from steelyard_worker.frameworks.mindspore.predictor import Tensors
    from steelyard_worker.network import Network


class Trainer(Predictor):
    """One cell in training mode, with its update rule."""

    step_cell: type[cells.Step] = cells.Step
    reference_step_cell: type[cells.Step] = cells.ReferenceStep
    gradients_cell: type[cells.Gradients] = cells.Gradients

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
        self._optimizer, self._steps = optimizer, 0
        if settings.knobs["recomputation"] == "blocks":
            layers.compute_again(self._cell, network.blocks)
        self.columns = (*implementation.INPUTS, *implementation.TARGETS)
        trained = {p.name: self._named[p.name] for p in network.parameters if p.trainable}
        for name in self._named.keys() - trained.keys():
            self._named[name].requires_grad = False
        self._rule, self._order = optimizers.update_rule(optimizer, trained, rates)
        parameters = tuple(trained[name] for name in self._order)
        parts = self._cell, implementation.loss(), len(implementation.INPUTS)
        step = self.reference_step_cell if optimizer.implementation == "reference" else self.step_cell
        share = accumulation.parts_of(settings)
        more = () if share == 1 else (share,)
        self._train = step(cells.Loss(*parts), self._rule, parameters, optimizer.clip, *more).set_train()
        self._differentiate = self.gradients_cell(cells.LossAndOutputs(*parts), parameters).set_train()
        self._cell.set_train()
        self._last_loss: Tensor | None = None
        self._drops = settings.knobs["dropout"] == dropout.ON

    def step(self, batch: Tensors) -> Tensor:
        """Forward, backward, update; the loss is not read."""
        if self._optimizer.implementation == "reference":
            self._steps += 1
            scalars = optimizers.scalars(self._optimizer, self._steps)
            self._last_loss = self._train(*(Tensor(value, mindspore.float32) for value in scalars), *batch)
        else:
            self._last_loss = self._train(*batch)
        return self._last_loss

    def synchronise(self) -> None:
        """Wait until the last updated parameter and the loss can be read, as for a predictor's outputs."""
        if self._on_ascend:
            mindspore.runtime.synchronize()
        if self._last_loss is not None:
            self._named[self._order[-1]].asnumpy()
            self._last_loss.asnumpy()

    def restart(self, weights: Mapping[str, Array]) -> None:
        """Copy weights into the parameters' own memory, which the compiled step has."""
        self.synchronise()
        for name, parameter in self._named.items():
            optimizers.put(parameter, np.asarray(weights[name], np.float32))
        optimizers.forget(self._rule)
        self._steps = 0
        if self._drops:
            mindspore.set_seed(dropout.SEED)

    def losses(self, handles: list[Tensor]) -> Array:
        """Read the losses back."""
        return np.array([handle.asnumpy() for handle in handles], np.float32)

    def gradients(self, batch: Tensors) -> tuple[dict[str, Array], float, dict[str, Array]]:
        """Forward in training mode and backward."""
        (loss, outputs), gradients = self._differentiate(*batch)
        found = dict(zip(self._order, map(to_numpy, gradients), strict=True))
        return self._canonical(outputs), float(loss.asnumpy()), found

    def outputs(self, batch: Tensors) -> dict[str, Array]:
        """Forward in inference mode."""
        self._cell.set_train(False)
        found = super().outputs(batch[: len(self._implementation.INPUTS)])
        self._cell.set_train(True)
        return found
