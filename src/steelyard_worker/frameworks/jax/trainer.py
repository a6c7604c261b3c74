"""One network with its weights and its optimizer as one jitted function over donated buffers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import jax
import numpy as np

from steelyard_worker.frameworks import named_tensors
from steelyard_worker.frameworks.jax import layouts, optimizers
from steelyard_worker.frameworks.jax.layers import Choices, Layers

if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import ModuleType

    from steelyard_worker.batches import Batch
    from steelyard_worker.case import Optimizer
    from steelyard_worker.frameworks.base import Array
    from steelyard_worker.network import Network

    Tensors = Mapping[str, jax.Array]


class Trainer:
    """`carry` is (trained tensors, statistics and frozen tensors, optimizer state); every step donates and replaces it."""

    def __init__(
        self, implementation: ModuleType, sizes: dict[str, Any], network: Network, weights: Mapping[str, Array],
        optimizer: Optimizer, precision: str, choices: Choices,
    ) -> None:  # fmt: skip
        self._implementation, self._sizes, self._choices = implementation, sizes, choices
        self._precision = precision
        self._kinds = {p.name: p.kind for p in network.parameters}
        named_tensors.check(network, {name: array.shape for name, array in weights.items()})
        native = {p.name: self._load(p.kind, weights[p.name]) for p in network.parameters}
        trained = {p.name: native.pop(p.name) for p in network.parameters if p.trainable}
        self._rule = optimizers.update_rule(optimizer, list(trained))
        # One program, because every zero tensor would otherwise be compiled separately.
        self.carry = (trained, native, jax.jit(self._rule.init)(trained))
        self.scalars = self._rule.scalars
        self.update = jax.jit(self._update, donate_argnums=0)
        self._infer = jax.jit(self._outputs)
        self.loss: jax.Array | None = None

    def _load(self, kind: str, array: Array) -> jax.Array:
        # Copied because the buffer is donated. `jnp.array` would compile a program for every shape.
        return jax.device_put(layouts.to_native(kind, array, self._precision), may_alias=False)

    def _forward(self, tensors: Tensors, batch: Tensors, training: bool) -> tuple[dict[str, jax.Array], Tensors]:
        layers = Layers(tensors, training, self._choices)
        return self._implementation.forward(layers, self._sizes, batch), layers.statistics

    def _objective(self, trained: Tensors, fixed: Tensors, batch: Tensors) -> tuple[jax.Array, tuple[Any, Tensors]]:
        outputs, statistics = self._forward({**trained, **fixed}, batch, training=True)
        return self._implementation.loss(outputs, batch), (outputs, statistics)

    def _update(self, state: Any, batch: Tensors, scalars: Tensors) -> tuple[Any, jax.Array]:
        trained, fixed, memory = state
        (loss, (_, statistics)), gradients = jax.value_and_grad(self._objective, has_aux=True)(trained, fixed, batch)
        trained, memory = self._rule.update(trained, gradients, memory, scalars)
        return (trained, {**fixed, **statistics}, memory), loss

    def _outputs(self, tensors: Tensors, batch: Tensors) -> dict[str, jax.Array]:
        return self._forward(tensors, batch, training=False)[0]

    def put(self, batch: Batch) -> dict[str, jax.Array]:
        """Copy a canonical batch to the device, in JAX's layout; on CPU, JAX would otherwise use the caller's memory."""
        native = {name: layouts.input_to_native(array, self._precision) for name, array in batch.items()}
        return jax.device_put(native, may_alias=False)

    def step(self, batch: Tensors) -> jax.Array:
        """Forward, backward, update; the loss stays on the device."""
        self.carry, self.loss = self.update(self.carry, batch, self.scalars())
        return self.loss

    def synchronise(self) -> None:
        """Wait for every buffer that the last step replaces and for its loss."""
        jax.block_until_ready((self.carry, self.loss))

    def losses(self, handles: list[jax.Array]) -> Array:
        """Copy the losses to the host without compiling anything."""
        return np.array(jax.device_get(handles), np.float32)

    def gradients(self, batch: Tensors) -> tuple[dict[str, Array], float, dict[str, Array]]:
        """Forward in training mode and backward."""
        trained, fixed, _ = self.carry
        (loss, (outputs, _)), gradients = jax.jit(jax.value_and_grad(self._objective, has_aux=True))(
            trained, fixed, batch
        )
        return _numpy(outputs), float(loss), self._canonical(gradients)

    def outputs(self, batch: Tensors) -> dict[str, Array]:
        """Forward in inference mode."""
        trained, fixed, _ = self.carry
        return _numpy(self._infer({**trained, **fixed}, batch))

    def state(self) -> dict[str, Array]:
        """Return every tensor that the network names, canonical."""
        trained, fixed, _ = self.carry
        return self._canonical({**trained, **fixed})

    def _canonical(self, tensors: Tensors) -> dict[str, Array]:
        return {name: layouts.to_canonical(self._kinds[name], np.asarray(tensors[name])) for name in tensors}


def _numpy(tensors: Tensors) -> dict[str, Array]:
    return {name: np.asarray(tensor) for name, tensor in tensors.items()}
