"""One MindSpore cell with its update rule."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import mindspore
import numpy as np
from mindspore import Tensor

from steelyard_worker import dropout, probes
from steelyard_worker.frameworks.mindspore import cells, layers, optimizers
from steelyard_worker.frameworks.mindspore.predictor import Predictor, fill, to_numpy
from steelyard_worker.probes import probe

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from types import ModuleType

    from mindspore import nn

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
        self, settings: Settings, implementation: ModuleType, sizes: dict[str, Any], network: Network,
        weights: Mapping[str, Array], optimizer: Optimizer, rates: Array | None = None,
    ) -> None:  # fmt: skip
        super().__init__(settings, implementation, sizes, network, weights)
        self._optimizer, self._steps = optimizer, 0
        if settings.knobs["recomputation"] == "blocks":
            layers.compute_again(self._cell, network.blocks)
        self.columns = (*implementation.INPUTS, *implementation.TARGETS)
        trained = {p.name: self._named[p.name] for p in network.parameters if p.trainable}
        self._rule, self._order = optimizers.update_rule(optimizer, trained, rates)
        parameters = tuple(trained[name] for name in self._order)
        parts = self._cell, implementation.loss(), len(implementation.INPUTS)
        step = self.reference_step_cell if optimizer.implementation == "reference" else self.step_cell
        self._train = step(cells.Loss(*parts), self._rule, parameters, optimizer.clip).set_train()
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
        """Put data into the parameters that the compiled step has."""
        self.synchronise()
        fill(self._named, weights)
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

    def inner(self, batch: Tensors, names: Collection[str]) -> dict[str, Array]:
        """Run forward in training mode, always in PyNative mode; the output of a cell counts under the cell's name."""
        mindspore.set_context(mode=mindspore.PYNATIVE_MODE)
        with probes.collected() as found:
            for name, cell in self._cell.cells_and_names():
                if name in names:
                    cell.register_forward_hook(partial(_keep, name))
            self._cell(*batch[: len(self._implementation.INPUTS)])
        return {name: to_numpy(found[name]) for name in found.keys() & names}


def _keep(name: str, cell: nn.Cell, inputs: Any, output: Any) -> None:
    """Keep the output of a cell; not where it has several."""
    del cell, inputs
    if isinstance(output, Tensor):
        probe(name, output)
