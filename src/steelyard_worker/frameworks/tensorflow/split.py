"""One network cut in parts, each on a device of its own, with the variables, gradients and updates of that part.

The cut is made while the graph is traced: operations belong to the first part until the first variable of the second part is
read, and so on. Gradients are computed where the operation was that they belong to.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import tensorflow as tf

from steelyard_worker.frameworks.tensorflow import mistakes, optimizers
from steelyard_worker.frameworks.tensorflow.layers import Variables
from steelyard_worker.frameworks.tensorflow.trainer import Learner

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from types import ModuleType

    from steelyard_worker.case import Optimizer
    from steelyard_worker.frameworks.base import Array
    from steelyard_worker.frameworks.tensorflow.predictor import Tensors, Wrap
    from steelyard_worker.network import Network


def divide(names: Sequence[str], parts: int) -> dict[str, int]:
    """Return the part of each tensor: equal numbers of layers, in the order of the network. A layer is not divided."""
    layers = list(dict.fromkeys(_layer(name) for name in names))
    return {name: layers.index(_layer(name)) * parts // len(layers) for name in names}


def _layer(name: str) -> str:
    return name.rpartition(".")[0] or name


@dataclass(frozen=True)
class PlacedVariables(Variables):
    """Variables on the devices of their parts. `parts`: of each name."""

    devices: tuple[str, ...] = ()
    parts: dict[str, int] = field(default_factory=dict)

    def new(self, name: str, *shape: int) -> tf.Variable:
        """Create a variable on the device of its part."""
        with tf.device(self.devices[self.parts.get(name, 0)]):
            return super().new(name, *shape)


class Places:
    """Chooses the device of each operation while a graph is traced, by the variables that were read before it."""

    def __init__(self, devices: Sequence[str], parts: Mapping[str, int], named: Mapping[str, tf.Variable]) -> None:
        self._devices, self._now = devices, 0
        self._parts = {id(variable.handle): parts[name] for name, variable in named.items()}

    @contextmanager
    def followed(self) -> Iterator[None]:
        """Place what is traced, beginning with the first part."""
        self._now = 0
        with tf.compat.v1.device(self._device):
            yield

    def _device(self, operation: tf.Operation) -> str:
        owned = [self._parts.get(id(_variable(each)), 0) for each in operation.inputs if each.dtype == tf.resource]
        read = [self._parts.get(id(_variable(each)), 0) for each in operation.inputs]
        self._now = max(self._now, *read, 0)
        # A variable is read and written where it is, also by a later part.
        return self._devices[owned[0] if owned else self._now]


# Operations that read a variable; TensorFlow itself places them where the variable is.
READS = ("ReadVariableOp", "ResourceGather", "ResourceGatherNd", "Identity")


def _variable(tensor: tf.Tensor) -> Any:
    """Return the handle of the variable that this tensor is, or was read from; None: it is neither."""
    while not isinstance(tensor, tf.__internal__.EagerTensor):
        if tensor.op.type in READS:
            tensor = tensor.op.inputs[0]
            continue
        captures = getattr(tensor.graph, "captures", ())
        tensor = next((outer for outer, inner in captures if inner.op.name == tensor.op.name), None)
        if tensor is None:
            return None
    return tensor


class SplitTrainer(Learner):
    """A network in parts; `micro` micro-batches of each batch may be in different parts at the same time."""

    def __init__(
        self,
        devices: Sequence[str],
        micro: int,
        wrap: Wrap,
        variables: Variables,
        implementation: ModuleType,
        sizes: dict[str, Any],
        network: Network,
        weights: Mapping[str, Array],
        optimizer: Optimizer,
        kernel: str,
        rates: Array | None = None,
        loss: str = mistakes.RIGHT,
    ) -> None:
        parts = divide([parameter.name for parameter in network.parameters], len(devices))
        given = {each.name: getattr(variables, each.name) for each in fields(variables)}
        placed = PlacedVariables(**given, devices=tuple(devices), parts=parts)
        self._devices, self._micro = devices, micro
        super().__init__(
            wrap, placed, implementation, sizes | {"batch": sizes["batch"] // micro}, network, weights, loss
        )
        self._places = Places(devices, parts, self._named)
        self._clip = optimizer.clip
        self._updates: list[tuple[list[int], optimizers.Rule]] = []
        for part, device in enumerate(devices):
            own = {name: variable for name, variable in self._trained.items() if parts[name] == part}
            if own:
                with tf.device(device):
                    rule = optimizers.update_rule(replace(optimizer, clip=0.0), own, kernel, rates)
                self._updates.append(([list(self._trained).index(name) for name in own], rule))
        self.train_step = wrap(self.whole_step)

    def _gradients(
        self, batch: Tensors, sparse: frozenset[str] = frozenset()
    ) -> tuple[Tensors, tf.Tensor, list[tf.Tensor | tf.IndexedSlices]]:
        shares = {name: tf.split(tensor, self._micro) for name, tensor in batch.items()}
        found = [self._of_share({name: each[number] for name, each in shares.items()}) for number in range(self._micro)]
        outputs, losses, gradients = zip(*found, strict=True)
        if self._micro == 1:
            return outputs[0], losses[0], gradients[0]
        mean = []
        for variable, each in zip(self._trained.values(), zip(*gradients, strict=True), strict=True):
            with tf.device(variable.device):
                mean.append(tf.add_n(each) / self._micro)
        with tf.device(self._devices[-1]):
            joined = {name: tf.concat([each[name] for each in outputs], 0) for name in outputs[0]}
            return joined, tf.add_n(losses) / self._micro, mean

    def _of_share(self, share: Tensors) -> tuple[Tensors, tf.Tensor, list[tf.Tensor]]:
        with self._places.followed():
            outputs = self._outputs(share, training=True)
            loss, differentiated = self._objective(outputs, share)
        variables = list(self._trained.values())
        found = tf.compat.v1.gradients(differentiated, variables, colocate_gradients_with_ops=True)
        dense = []
        for variable, gradient in zip(variables, found, strict=True):
            with tf.device(variable.device):
                dense.append(tf.convert_to_tensor(gradient))
        return outputs, loss, dense

    def whole_step(self, batch: Tensors) -> tf.Tensor:
        """Forward, backward, and the update of each part on its device; traced for `train_step`."""
        _, loss, gradients = self._gradients(batch)
        if self._clip:
            gradients, _ = tf.clip_by_global_norm(gradients, self._clip)
        for places, rule in self._updates:
            rule([gradients[place] for place in places])
        return loss

    def step(self, batch: Tensors) -> tf.Tensor:
        """Forward, backward, update; the loss stays a tensor."""
        return self.train_step(batch)

    def restart(self, weights: Mapping[str, Array]) -> None:
        """Assign weights and the first state of each rule to the variables of all parts, wherever they are."""
        self._load(weights)
        for _, rule in self._updates:
            rule.forget()

    def synchronise(self) -> None:
        """Wait for the first device: a step returns when all parts have finished."""
        with tf.device(self._devices[0]):
            tf.raw_ops.SyncDevice()

    def devices(self, batch: Tensors) -> dict[str, int]:
        """Count the operations of the traced step by device."""
        graph = tf.function(self._gradients, autograph=False).get_concrete_function(batch).graph
        names, counts = np.unique([operation.device for operation in graph.get_operations()], return_counts=True)
        return dict(zip(names.tolist(), counts.tolist(), strict=True))
