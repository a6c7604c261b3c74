"""Data parallel training as one program over all devices: batches are divided among them, tensors are on every one.

The program computes what one device would, over the whole batch. XLA's partitioner adds the exchange of gradients, and of all
that crosses samples, such as the statistics of batch normalisation.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from steelyard_worker.frameworks.jax import layouts
from steelyard_worker.frameworks.jax.predictor import to_numpy
from steelyard_worker.frameworks.jax.trainer import Trainer

if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import ModuleType

    from steelyard_worker.batches import Batch
    from steelyard_worker.case import Optimizer
    from steelyard_worker.frameworks.base import Array
    from steelyard_worker.frameworks.jax.layers import Choices
    from steelyard_worker.frameworks.jax.predictor import Tensors
    from steelyard_worker.network import Network

AXIS = "batch"


def trainer(devices: list[jax.Device], processes: int) -> type[Sharded]:
    """Return the trainer over these devices, which belong to one process or to several."""
    mesh = Mesh(np.array(devices), (AXIS,))
    divided, everywhere = (NamedSharding(mesh, PartitionSpec(*axes)) for axes in ((AXIS,), ()))
    places = {"divided": divided, "everywhere": everywhere}
    if processes > 1:
        return type("Distributed", (Distributed,), places | {"of_outputs": divided})
    return type("Sharded", (Sharded,), places)


class Sharded(Trainer):
    """One process drives all devices. `divided` and `everywhere` say where an array is; `trainer` sets them.

    `of_outputs`: where outputs have to be; None: where the compiler leaves them.
    """

    divided: NamedSharding
    everywhere: NamedSharding
    of_outputs: NamedSharding | None = None

    def __init__(
        self, implementation: ModuleType, sizes: dict[str, Any], network: Network, weights: Mapping[str, Array],
        optimizer: Optimizer, precision: str, choices: Choices, rates: Array | None = None,
    ) -> None:  # fmt: skip
        super().__init__(implementation, sizes, network, weights, optimizer, precision, choices, rates)
        # What a step returns must be placed as what it takes, or the next step would be compiled again.
        self.carry = jax.jit(_same, out_shardings=self.everywhere)(self.carry)
        self.update = jax.jit(self._update, donate_argnums=0, out_shardings=self.everywhere)
        self._infer = jax.jit(self._outputs, out_shardings=self.of_outputs)

    def _load(self, kind: str, array: Array) -> jax.Array:
        return jax.device_put(layouts.to_native(kind, array, self._precision), self.everywhere, may_alias=False)

    def put(self, batch: Batch) -> dict[str, jax.Array]:
        """Copy a canonical batch to the devices, each its share; the last batch of an evaluation may not be divisible."""
        native = {name: layouts.input_to_native(array, self._precision) for name, array in batch.items()}
        divisible = len(next(iter(native.values()))) % self.divided.mesh.size == 0
        return jax.device_put(native, self.divided if divisible else self.everywhere, may_alias=False)

    def gradients(self, batch: Tensors) -> tuple[dict[str, Array], float, dict[str, Array]]:
        """Forward in training mode and backward; gradients are those of the whole batch on every device."""

        def compute(trained: Tensors, fixed: Tensors, batch: Tensors) -> Any:
            (loss, (outputs, _)), gradients = jax.value_and_grad(self._objective, has_aux=True)(trained, fixed, batch)
            return outputs, loss, gradients

        trained, fixed, _ = self.carry
        placed = jax.jit(compute, out_shardings=(self.of_outputs, self.everywhere, self.everywhere))
        outputs, loss, gradients = placed(trained, fixed, batch)
        return self._own(outputs), float(loss), self._canonical(gradients)

    def outputs(self, batch: Tensors) -> dict[str, Array]:
        """Forward in inference mode."""
        return self._own(self._infer(self._current, batch))

    def _own(self, outputs: Tensors) -> dict[str, Array]:
        """Return the outputs for the samples of this process."""
        return to_numpy(outputs)


class Distributed(Sharded):
    """Every process drives one device, gives its share of a batch, and gets its share of the outputs back."""

    def _load(self, kind: str, array: Array) -> jax.Array:
        native = layouts.to_native(kind, array, self._precision)
        return jax.make_array_from_process_local_data(self.everywhere, native)

    def put(self, batch: Batch) -> dict[str, jax.Array]:
        """Copy this process's share to its device, as a part of the whole batch."""
        # Copied, because JAX may use memory of the caller where it can.
        native = {name: np.array(layouts.input_to_native(array, self._precision)) for name, array in batch.items()}
        return {name: jax.make_array_from_process_local_data(self.divided, array) for name, array in native.items()}

    def _own(self, outputs: Tensors) -> dict[str, Array]:
        return {
            name: np.concatenate([np.asarray(shard.data) for shard in tensor.addressable_shards])
            for name, tensor in outputs.items()
        }


def _same(value: Any) -> Any:
    return value
