"""One network with its weights and its optimizer as one jitted function over donated buffers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import jax
import numpy as np

from steelyard_worker import accumulation, dropout
from steelyard_worker.frameworks.jax import optimizers
from steelyard_worker.frameworks.jax.layers import RANDOM
from steelyard_worker.frameworks.jax.predictor import Predictor, to_numpy

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from types import ModuleType

    from steelyard_worker.case import Optimizer
    from steelyard_worker.frameworks.base import Array
    from steelyard_worker.frameworks.jax.layers import Choices
    from steelyard_worker.frameworks.jax.predictor import Tensors
    from steelyard_worker.network import Network


class Trainer(Predictor):
    """`carry` is (trained tensors, statistics and frozen tensors, optimizer state); every step donates and replaces it."""

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
        super().__init__(implementation, sizes, network, weights, precision, choices)
        self._trainable = [p.name for p in network.parameters if p.trainable]
        self._rule = optimizers.update_rule(optimizer, self._trainable, rates)
        # One program, because every zero tensor would otherwise be compiled separately.
        self._init = jax.jit(self._rule.init)
        native, self.tensors = dict(self.tensors), {}  # from now on they are in `carry`
        self.carry = self._first_carry(native)
        self.scalars = self._rule.scalars
        self.update = jax.jit(self._update, donate_argnums=0)
        self.loss: jax.Array | None = None

    def _first_carry(self, tensors: dict[str, jax.Array]) -> tuple[Any, Any, Any]:
        """Return what the first step takes."""
        trained = {name: tensors.pop(name) for name in self._trainable}
        if self._choices.dropout:
            tensors[RANDOM] = jax.random.key(dropout.SEED)
        return trained, tensors, self._init(trained)

    def _objective(self, trained: Tensors, fixed: Tensors, batch: Tensors) -> tuple[jax.Array, tuple[Any, Tensors]]:
        outputs, statistics = self._forward({**trained, **fixed}, batch, training=True)
        return self._implementation.loss(outputs, batch), (outputs, statistics)

    def _differentiated(
        self, trained: Tensors, fixed: Tensors, batch: Tensors
    ) -> tuple[Any, jax.Array, Tensors, Tensors]:
        """Return the outputs, the loss, the gradients and the new statistics of a batch."""
        (loss, (outputs, statistics)), gradients = jax.value_and_grad(self._objective, has_aux=True)(
            trained, fixed, batch
        )
        return outputs, loss, gradients, statistics

    def _added(self, trained: Tensors, fixed: Tensors, batch: Tensors) -> tuple[Any, jax.Array, Tensors, Tensors]:
        """Return no outputs, the mean loss, the mean gradients and the last statistics of parts that follow each other."""
        parts = accumulation.parts_for(self._choices.parts, len(next(iter(batch.values()))))
        shares = {name: each.reshape(parts, -1, *each.shape[1:]) for name, each in batch.items()}

        def add(carried: Any, part: Tensors) -> tuple[Any, jax.Array]:
            total, known = carried
            _, loss, gradients, statistics = self._differentiated(trained, known, part)
            return (jax.tree.map(jax.numpy.add, total, gradients), {**known, **statistics}), loss

        none = jax.tree.map(jax.numpy.zeros_like, trained)
        (total, known), losses = jax.lax.scan(add, (none, fixed), shares)
        return None, losses.mean(), jax.tree.map(lambda each: each / parts, total), known

    def _update(self, state: Any, batch: Tensors, scalars: Tensors) -> tuple[Any, jax.Array]:
        trained, fixed, memory = state
        differentiate = self._differentiated if self._choices.parts == 1 else self._added
        _, loss, gradients, statistics = differentiate(trained, fixed, batch)
        trained, memory = self._rule.update(trained, gradients, memory, scalars)
        return (trained, {**fixed, **statistics}, memory), loss

    def step(self, batch: Tensors) -> jax.Array:
        """Forward, backward, update; the loss stays on the device."""
        self.carry, self.loss = self.update(self.carry, batch, self.scalars())
        return self.loss

    def restart(self, weights: Mapping[str, Array]) -> None:
        """Load weights as the constructor did; the compiled step and the program that makes the memory of the rule are kept."""
        self.synchronise()
        self.carry = None  # before the new one is made, so that a device need not hold both
        self._rule.forget()
        self.carry = self._first_carry({name: self._load(kind, weights[name]) for name, kind in self._kinds.items()})

    def lowered(self, batch: Tensors) -> Any:
        """Return the program of a step as JAX traced it."""
        return self.update.lower(self.carry, batch, self.scalars())

    def program(self, batch: Tensors) -> str:
        """Return the text of the optimised program of a step, which is compiled again for that."""
        return str(self.lowered(batch).compile().as_text())

    def synchronise(self) -> None:
        """Wait for every buffer that the last step replaces and for its loss."""
        jax.block_until_ready((self.carry, self.loss))

    def losses(self, handles: list[jax.Array]) -> Array:
        """Copy the losses to the host without compiling anything."""
        return np.array(jax.device_get(handles), np.float32)

    def gradients(self, batch: Tensors) -> tuple[dict[str, Array], float, dict[str, Array]]:
        """Forward in training mode and backward."""
        trained, fixed, _ = self.carry
        outputs, loss, gradients, _ = jax.jit(self._differentiated)(trained, fixed, batch)
        return to_numpy(outputs), float(loss), self._canonical(gradients)

    def outputs(self, batch: Tensors) -> dict[str, Array]:
        """Forward in inference mode."""
        return to_numpy(self._infer(self._current, batch))

    def inner(self, batch: Tensors, names: Collection[str]) -> dict[str, Array]:
        """Run forward in training mode, with the inner tensors as its results."""
        return self._inner(self._all, batch, names, training=True)

    def state(self) -> dict[str, Array]:
        """Return every tensor that the network names, canonical."""
        return self._canonical(self._current)

    @property
    def _all(self) -> Tensors:
        trained, fixed, _ = self.carry
        return {**trained, **fixed}

    @property
    def _current(self) -> Tensors:
        return {name: tensor for name, tensor in self._all.items() if name != RANDOM}
