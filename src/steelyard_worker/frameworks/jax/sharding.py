"""Data parallel training as one program over all devices: batches are divided among them, tensors are on every one.

Either the program computes what one device would, over the whole batch: XLA's partitioner adds the exchange of gradients, and of
all that crosses samples, such as the statistics of batch normalisation. Or it says what one device computes from its share, and
averages gradients (`jax.shard_map`); then batch normalisation uses the statistics of a share, as in other frameworks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import jax
import numpy as np
from jax import lax
from jax.flatten_util import ravel_pytree
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from steelyard_worker.frameworks.jax import layouts
from steelyard_worker.frameworks.jax.layers import RANDOM
from steelyard_worker.frameworks.jax.predictor import to_numpy
from steelyard_worker.frameworks.jax.trainer import Trainer

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from types import ModuleType

    from steelyard_worker.batches import Batch
    from steelyard_worker.case import Optimizer
    from steelyard_worker.frameworks.base import Array
    from steelyard_worker.frameworks.jax.layers import Choices
    from steelyard_worker.frameworks.jax.predictor import Tensors
    from steelyard_worker.network import Network

AXIS = "batch"
# Bytes that are exchanged at once on CPUs: as many as in PyTorch's DistributedDataParallel. Tensors of at least LARGE bytes are
# not joined with others, because XLA computes a joined array slowly: with its 59 MB joined, a step of VGG-16 took 1.10 s on two
# devices of one process, and takes 0.38 s without. Between two processes there was no difference.
BUCKET = 25 * 2**20
LARGE = 2**20
# Name of the loss beside tensors of the network.
LOSS = "loss"
DIVIDED, EVERYWHERE = PartitionSpec(AXIS), PartitionSpec()


def trainer(devices: list[jax.Device], processes: int, *, by_share: bool) -> type[Sharded]:
    """Return the trainer over these devices, which belong to one process or to several.

    by_share: every device computes the step from its share of the batch; otherwise all compute that of the whole batch.
    """
    mesh = Mesh(np.array(devices), (AXIS,))
    divided, everywhere = NamedSharding(mesh, DIVIDED), NamedSharding(mesh, EVERYWHERE)
    places: dict[str, Any] = {"divided": divided, "everywhere": everywhere}
    if processes > 1:
        places["of_outputs"] = divided
    bases = ((ByShare,) if by_share else ()) + ((Distributed,) if processes > 1 else (Sharded,))
    return type("".join(base.__name__ for base in bases), bases, places)


def mapped(function: Callable[..., Any], mesh: Mesh, given: Any, found: Any) -> Callable[..., Any]:
    """Return a function that every device runs, on its part of what `given` and `found` divide."""
    # JAX's check of what differs between devices would also add an exchange of gradients of its own.
    return jax.shard_map(function, mesh=mesh, in_specs=given, out_specs=found, check_vma=False)


class Sharded(Trainer):
    """One process drives all devices. `divided` and `everywhere` say where an array is; `trainer` sets them.

    `of_outputs`: where outputs have to be; None: where the compiler leaves them.
    """

    divided: NamedSharding
    everywhere: NamedSharding
    of_outputs: NamedSharding | None = None

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
        # What a step returns must be placed as what it takes, or the next step would be compiled again.
        self._replicated = jax.jit(_same, out_shardings=self.everywhere)
        self.carry = self._replicated(self.carry)
        update = self._over_devices(self._update, (EVERYWHERE, DIVIDED, EVERYWHERE), (EVERYWHERE, EVERYWHERE))
        self.update = jax.jit(update, donate_argnums=0, out_shardings=self.everywhere)
        self._infer = jax.jit(self._outputs, out_shardings=self.of_outputs)

    def restart(self, weights: Mapping[str, Array]) -> None:
        """Begin again on all devices."""
        super().restart(weights)
        self.carry = self._replicated(self.carry)

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
            return self._differentiated(trained, fixed, batch)[:3]

        trained, fixed, _ = self.carry
        given, found = (EVERYWHERE, EVERYWHERE, DIVIDED), (DIVIDED, EVERYWHERE, EVERYWHERE)
        placed = jax.jit(
            self._over_devices(compute, given, found), out_shardings=(self.of_outputs, self.everywhere, self.everywhere)
        )
        outputs, loss, gradients = placed(trained, fixed, batch)
        return self._own(outputs), float(loss), self._canonical(gradients)

    def outputs(self, batch: Tensors) -> dict[str, Array]:
        """Forward in inference mode."""
        return self._own(self._infer(self._current, batch))

    def _over_devices(self, function: Callable[..., Any], given: Any, found: Any) -> Callable[..., Any]:
        """Return a function of a step as it is compiled; XLA's partitioner divides it by where its arguments are."""
        del given, found
        return function

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


class ByShare(Sharded):
    """Every device computes the step from its share; loss, gradients and statistics of batch normalisation are averaged."""

    def _over_devices(self, function: Callable[..., Any], given: Any, found: Any) -> Callable[..., Any]:
        return mapped(function, self.divided.mesh, given, found)

    def _differentiated(
        self, trained: Tensors, fixed: Tensors, batch: Tensors
    ) -> tuple[Any, jax.Array, Tensors, Tensors]:
        following = {}
        if RANDOM in fixed:  # every device draws numbers of its own
            state, own = jax.random.split(fixed[RANDOM])
            fixed = {**fixed, RANDOM: jax.random.fold_in(own, lax.axis_index(AXIS))}
            following = {RANDOM: state}
        outputs, loss, gradients, statistics = super()._differentiated(trained, fixed, batch)
        statistics.pop(RANDOM, None)
        # The last layers come first, because the backward pass begins with them.
        backward = {name: gradients[name] for name in reversed(self._kinds) if name in gradients}
        means = _averaged({LOSS: loss} | statistics | backward)
        kept = {name: means[name] for name in statistics}
        return outputs, means[LOSS], {name: means[name] for name in gradients}, kept | following


def _averaged(tensors: Tensors) -> Tensors:
    """Return the means of tensors over the devices; all have the precision of the run.

    XLA joins exchanges on GPUs, but not on CPUs, where ranks wait for each other in each of them, however small it is.
    """
    if jax.default_backend() != "cpu":
        return lax.pmean(tensors, AXIS)
    found: dict[str, jax.Array] = {}
    for bucket in _buckets(tensors):
        joined, apart = ravel_pytree(bucket)
        found |= apart(lax.pmean(joined, AXIS))
    return found


def _buckets(tensors: Tensors) -> list[dict[str, jax.Array]]:
    """Divide tensors into those of at least LARGE bytes, each by itself, and runs of the others of at most BUCKET bytes."""
    found: list[dict[str, jax.Array]] = []
    joined: dict[str, jax.Array] = {}
    room = 0
    for name, tensor in tensors.items():
        if tensor.nbytes >= LARGE:
            found.append({name: tensor})
            continue
        if tensor.nbytes > room:
            joined, room = {}, BUCKET
            found.append(joined)
        joined[name] = tensor
        room -= tensor.nbytes
    return found


def _same(value: Any) -> Any:
    return value
