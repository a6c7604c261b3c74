"""One network with its weights, and its forward pass as one jitted function of weights and batch."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any

import jax
import numpy as np

from steelyard_worker import probes
from steelyard_worker.frameworks import named_tensors
from steelyard_worker.frameworks.jax import layouts
from steelyard_worker.frameworks.jax.layers import Choices, Layers

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from types import ModuleType

    from steelyard_worker.batches import Batch
    from steelyard_worker.frameworks.base import Array
    from steelyard_worker.network import Network

    Tensors = Mapping[str, jax.Array]

# Passes that may be unfinished at the same time: enough to keep the device busy, few enough for the memory of their outputs.
QUEUED_PASSES = 4


class Predictor:
    """`tensors` has the weights in JAX's layout; they are an argument of the jitted function, so none is a constant of it."""

    def __init__(
        self,
        implementation: ModuleType,
        sizes: dict[str, Any],
        network: Network,
        weights: Mapping[str, Array],
        precision: str,
        choices: Choices,
    ) -> None:
        self._implementation, self._sizes, self._choices = implementation, sizes, choices
        self._precision = precision
        self._kinds = {p.name: p.kind for p in network.parameters}
        named_tensors.check(network, {name: array.shape for name, array in weights.items()})
        self.tensors: Tensors = {p.name: self._load(p.kind, weights[p.name]) for p in network.parameters}
        self._infer = jax.jit(self._outputs)
        self._queued: deque[Any] = deque()

    def _load(self, kind: str, array: Array) -> jax.Array:
        # Copied because a trainer donates the buffer. `jnp.array` would compile a program for every shape.
        return jax.device_put(layouts.to_native(kind, array, self._precision), may_alias=False)

    def _forward(self, tensors: Tensors, batch: Tensors, training: bool) -> tuple[dict[str, jax.Array], Tensors]:
        layers = Layers(tensors, training, self._choices)
        return self._implementation.forward(layers, self._sizes, batch), layers.statistics

    def _outputs(self, tensors: Tensors, batch: Tensors) -> dict[str, jax.Array]:
        return self._forward(tensors, batch, training=False)[0]

    def put(self, batch: Batch) -> dict[str, jax.Array]:
        """Copy a canonical batch to the device, in JAX's layout; on CPU, JAX would otherwise use the caller's memory."""
        native = {name: layouts.input_to_native(array, self._precision) for name, array in batch.items()}
        return jax.device_put(native, may_alias=False)

    def infer(self, batch: Tensors) -> dict[str, jax.Array]:
        """Forward in inference mode; the outputs stay on the device."""
        outputs = self._infer(self.tensors, batch)
        self._queued.append(outputs)
        if len(self._queued) > QUEUED_PASSES:
            jax.block_until_ready(self._queued.popleft())
        return outputs

    def program(self, batch: Tensors) -> str:
        """Return the text of the optimised program of a forward pass, which is compiled again for that."""
        return str(self._infer.lower(self.tensors, batch).compile().as_text())

    def synchronise(self) -> None:
        """Wait for every pass: nothing makes independent programs finish in the order in which they were called."""
        jax.block_until_ready(self._queued)

    def outputs(self, batch: Tensors) -> dict[str, Array]:
        """Forward in inference mode."""
        return to_numpy(self.infer(batch))

    def inner(self, batch: Tensors, names: Collection[str]) -> dict[str, Array]:
        """Run forward in inference mode, with the inner tensors as its results."""
        return self._inner(self.tensors, batch, names, training=False)

    def _inner(self, tensors: Tensors, batch: Tensors, names: Collection[str], training: bool) -> dict[str, Array]:
        def collect(tensors: Tensors, batch: Tensors) -> Tensors:
            with probes.collected() as found:
                self._forward(tensors, batch, training=training)
            return {name: found[name] for name in found.keys() & names}

        return to_numpy(jax.jit(collect)(tensors, batch))

    def state(self) -> dict[str, Array]:
        """Return every tensor that the network names, canonical."""
        return self._canonical(self.tensors)

    def _canonical(self, tensors: Tensors) -> dict[str, Array]:
        return {name: layouts.to_canonical(self._kinds[name], np.asarray(tensors[name])) for name in tensors}


def to_numpy(tensors: Tensors) -> dict[str, Array]:
    """Return tensors as arrays in host memory."""
    return {name: np.asarray(tensor) for name, tensor in tensors.items()}
