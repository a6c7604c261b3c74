"""Local updates: every device trains a copy of its own on its share of the batch, and the copies are averaged every few steps."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import Mesh, NamedSharding

from steelyard_worker.frameworks.jax.layers import RANDOM
from steelyard_worker.frameworks.jax.sharding import AXIS, DIVIDED, EVERYWHERE, Sharded, mapped

if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import ModuleType

    from steelyard_worker.case import Optimizer
    from steelyard_worker.frameworks.base import Array
    from steelyard_worker.frameworks.jax.layers import Choices
    from steelyard_worker.frameworks.jax.predictor import Tensors
    from steelyard_worker.network import Network

# Steps between two averages.
EVERY = 4


def trainer(devices: list[jax.Device]) -> type[Local]:
    """Return the trainer over these devices."""
    mesh = Mesh(np.array(devices), (AXIS,))
    places = {"divided": NamedSharding(mesh, DIVIDED), "everywhere": NamedSharding(mesh, EVERYWHERE)}
    return type("Local", (Local,), places)


class Local(Sharded):
    """Every array of `carry` has one more axis, the first, over the devices: each has its own copy."""

    def __init__(
        self,
        implementation: ModuleType,
        sizes: dict[str, Any],
        network: Network,
        weights: Mapping[str, Array],
        optimizer: Optimizer,
        precision: str,
        choices: Choices,
        rates: Array | None = None,
    ) -> None:
        super().__init__(implementation, sizes, network, weights, optimizer, precision, choices, rates)
        count = self.divided.mesh.size

        def copied(value: Any) -> Any:
            return jax.tree.map(lambda each: jnp.broadcast_to(each, (count, *each.shape)), value)

        self._copied = jax.jit(copied, out_shardings=self.divided)
        self._copy()
        mesh = self.divided.mesh
        update = mapped(self._one, mesh, (DIVIDED, DIVIDED, EVERYWHERE), (DIVIDED, DIVIDED))
        self.update = jax.jit(update, donate_argnums=0)
        average = jax.jit(mapped(_averaged, mesh, (DIVIDED,), DIVIDED), donate_argnums=0)
        # Compiled here, because the first average comes after some steps, when nothing should be compiled any more.
        self._average = average.lower(self.carry).compile()

    def _copy(self) -> None:
        """Give every device a copy of what the first step takes."""
        self.carry, self._steps = self._copied(self.carry), 0
        if RANDOM in self.carry[1]:  # every copy draws numbers of its own
            keys = jax.random.split(self.carry[1][RANDOM][0], self.divided.mesh.size)
            self.carry[1][RANDOM] = jax.device_put(keys, self.divided)

    def restart(self, weights: Mapping[str, Array]) -> None:
        """Begin again on all devices, and count the steps to the next average anew."""
        super().restart(weights)
        self._copy()

    def _one(self, carry: Any, batch: Any, scalars: Any) -> Any:
        """Return the next state and the loss of one device, whose copy is the first and only one that it sees."""
        carry, loss = self._update(jax.tree.map(lambda each: each[0], carry), batch, scalars)
        return jax.tree.map(lambda each: each[None], (carry, loss))

    def step(self, batch: Tensors) -> jax.Array:
        """Forward, backward and update on every device, and the average where it is due; the losses of all stay there."""
        self.carry, self.loss = self.update(self.carry, batch, self.scalars())
        self._steps += 1
        if self._steps % EVERY == 0:
            self.carry = self._average(self.carry)
        return self.loss

    def losses(self, handles: list[jax.Array]) -> Array:
        """Copy the losses to the host, and return their means over the devices."""
        return np.array([np.mean(each) for each in jax.device_get(handles)], np.float32)

    def gradients(self, batch: Tensors) -> tuple[dict[str, Array], float, dict[str, Array]]:
        """Forward in training mode and backward over the whole batch, with the average of all copies."""
        kept, trained = self.carry, self._trained
        try:
            self.carry = (trained, {name: each for name, each in self._all.items() if name not in trained}, None)
            return super().gradients(batch)
        finally:
            self.carry = kept

    @property
    def _trained(self) -> Tensors:
        return {name: each for name, each in self._all.items() if name in self.carry[0]}

    @property
    def _all(self) -> Tensors:
        """The average of all copies; of random states, the first."""
        trained, fixed, _ = self.carry
        return {
            name: each[0] if name == RANDOM else jnp.mean(each, axis=0) for name, each in {**trained, **fixed}.items()
        }


def _averaged(carry: Any) -> Any:
    """Return the copy of one device with the mean of all copies; random and optimizer states stay its own."""
    trained, fixed, memory = carry
    means = {name: each if name == RANDOM else lax.pmean(each, AXIS) for name, each in fixed.items()}
    return lax.pmean(trained, AXIS), means, memory
