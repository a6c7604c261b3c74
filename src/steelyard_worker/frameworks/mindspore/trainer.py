"""One MindSpore cell with its update rule."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import mindspore
import numpy as np
from mindspore import Parameter, Tensor, nn
from mindspore.nn.utils import no_init_parameters

from steelyard_worker.frameworks import named_tensors
from steelyard_worker.frameworks.mindspore import cells, optimizers

if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import ModuleType

    from steelyard_worker.batches import Batch
    from steelyard_worker.case import Optimizer, Settings
    from steelyard_worker.frameworks.base import Array
    from steelyard_worker.network import Network

    Tensors = tuple[Tensor, ...]


class Trainer:
    """One cell with its update rule."""

    def __init__(
        self, settings: Settings, implementation: ModuleType, sizes: dict[str, Any], network: Network,
        weights: Mapping[str, Array], optimizer: Optimizer,
    ) -> None:  # fmt: skip
        self._implementation, self._optimizer, self._steps = implementation, optimizer, 0
        self.columns = (*implementation.INPUTS, *implementation.TARGETS)
        with no_init_parameters():  # all weights are loaded, and random initialisation takes seconds
            self._cell: nn.Cell = implementation.build(sizes)
        self._named = implementation.variables(self._cell)
        load(self._named, network, weights)
        trained = {p.name: self._named[p.name] for p in network.parameters if p.trainable}
        rule, self._order = optimizers.update_rule(optimizer, trained)
        parameters = tuple(trained[name] for name in self._order)
        parts = self._cell, implementation.loss(), len(implementation.INPUTS)
        step = cells.ReferenceStep if optimizer.implementation == "reference" else cells.Step
        self._train = step(cells.Loss(*parts), rule, parameters, optimizer.clip).set_train()
        self._differentiate = cells.Gradients(cells.LossAndOutputs(*parts), parameters).set_train()
        self._infer = cells.Inference(self._cell)
        self._cell.set_train()
        self._last_loss: Tensor | None = None
        self._on_ascend = settings.device == "ascend"

    def put(self, batch: Batch) -> Tensors:
        """Copy a canonical batch into tensors; MindSpore accepts int32 indices and labels."""
        return tuple(Tensor(np.ascontiguousarray(batch[name])) for name in self.columns)

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
        """Wait until the last updated parameter and the loss can be read: kernels run in the order in which they are issued.

        `mindspore.runtime.synchronize` is documented for accelerators only; on CPU its first call fails and does not wait.
        """
        if self._on_ascend:
            mindspore.runtime.synchronize()
        if self._last_loss is not None:
            self._named[self._order[-1]].asnumpy()
            self._last_loss.asnumpy()

    def losses(self, handles: list[Tensor]) -> Array:
        """Read the losses back."""
        return np.array([handle.asnumpy() for handle in handles], np.float32)

    def gradients(self, batch: Tensors) -> tuple[dict[str, Array], float, dict[str, Array]]:
        """Forward in training mode and backward."""
        (loss, outputs), gradients = self._differentiate(*batch)
        found = dict(zip(self._order, map(_numpy, gradients), strict=True))
        return self._canonical(outputs), float(loss.asnumpy()), found

    def outputs(self, batch: Tensors) -> dict[str, Array]:
        """Forward in inference mode."""
        self._cell.set_train(False)
        outputs = self._infer(*batch[: len(self._implementation.INPUTS)])
        self._cell.set_train(True)
        return self._canonical(outputs)

    def _canonical(self, outputs: Tensors) -> dict[str, Array]:
        # The last names may belong to heads that only some presets have.
        names = self._implementation.OUTPUTS[: len(outputs)]
        return dict(zip(names, map(_numpy, outputs), strict=True))

    def state(self) -> dict[str, Array]:
        """Return parameters and batch-norm statistics; MindSpore's layouts are the canonical ones on CPU."""
        return {name: _numpy(parameter) for name, parameter in self._named.items()}


def load(named: dict[str, Parameter], network: Network, weights: Mapping[str, Array]) -> None:
    """Copy canonical weights and names into the parameters; MindSpore's layouts are the canonical ones on CPU."""
    named_tensors.check(network, {name: tuple(parameter.shape) for name, parameter in named.items()})
    for name, parameter in named.items():
        parameter.set_data(Tensor(np.asarray(weights[name], np.float32)))
        parameter.name = name  # optimizers and graphs tell parameters apart by name
        parameter.init_mode = None  # otherwise copies, such as an optimizer's moments, are initialised at random first


def _numpy(tensor: Tensor) -> Array:
    return np.array(tensor.asnumpy())
