"""Asynchronous training by `tf.distribute.ParameterServerStrategy`.

Rank 0 coordinates, every rank is a worker, and a process beside them has the variables. The coordinator hands out shares of
batches. Whichever worker is free reads the variables from the server, computes the gradients of its share, and applies them at
once, whatever other workers have changed in the meantime.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import tensorflow as tf

from steelyard_worker.frameworks.tensorflow import cluster, mistakes, optimizers
from steelyard_worker.frameworks.tensorflow.trainer import Learner
from steelyard_worker.protocol import Refusal

if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import ModuleType

    from steelyard_worker.batches import Batch
    from steelyard_worker.case import Optimizer
    from steelyard_worker.frameworks.base import Array
    from steelyard_worker.frameworks.tensorflow.layers import Variables
    from steelyard_worker.frameworks.tensorflow.predictor import Tensors, Wrap
    from steelyard_worker.network import Network
    from steelyard_worker.ranks import Ranks


def connect(ranks: Ranks) -> tf.distribute.ParameterServerStrategy:
    """Connect the coordinator to all workers and the server."""
    resolver = tf.distribute.cluster_resolver.SimpleClusterResolver(cluster.of_servers(ranks), rpc_layer="grpc")
    return tf.distribute.ParameterServerStrategy(resolver)


class CoordinatingTrainer(Learner):
    """The network, whose variables are on the server, and the coordinator of the workers; it gets whole batches."""

    def __init__(
        self,
        strategy: tf.distribute.ParameterServerStrategy,
        workers: int,
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
        self._workers = workers
        share = sizes | {"batch": sizes["batch"] // workers}
        with strategy.scope():
            super().__init__(wrap, variables, implementation, share, network, weights, loss)
            # Every share is an update of its own, so a step makes as many as there are workers.
            repeated = None if rates is None else np.repeat(rates, workers)
            self._update = optimizers.update_rule(optimizer, self._trained, kernel, repeated)
            self._coordinator = tf.distribute.coordinator.ClusterCoordinator(strategy)
        # A coordinator takes functions without optional arguments only.
        self._backward, self.infer = (
            wrap(lambda share: self._gradients(share)),
            wrap(lambda share: self._outputs(share)),
        )
        self.train_step = wrap(self.whole_step)

    def whole_step(self, share: Tensors) -> tf.Tensor:
        """Forward, backward and update of one share, on a worker; traced for `train_step`."""
        _, loss, gradients = self._gradients(share)
        self._update(gradients)
        return loss

    def restart(self, weights: Mapping[str, Array]) -> None:
        """Refuse: the shares of a batch are applied in any order, so no steps can be repeated."""
        raise Refusal(
            "unsupported", "Workers apply their gradients in any order, so the first steps cannot be repeated."
        )

    def put(self, batch: Batch) -> list[Tensors]:
        """Copy a canonical batch into tensors, one share for each worker."""
        parts = {name: np.array_split(array, self._workers) for name, array in self.native(batch).items()}
        return [{name: tf.constant(each[number]) for name, each in parts.items()} for number in range(self._workers)]

    def step(self, batch: list[Tensors] | Tensors) -> list[Any]:
        """Hand out one share for each worker; it returns when they are in the queue."""
        shares = batch if isinstance(batch, list) else divided(batch, self._workers)
        return [self._coordinator.schedule(self.train_step, (share,)) for share in shares]

    def synchronise(self) -> None:
        """Wait until the workers have applied all gradients."""
        self._coordinator.join()

    def losses(self, handles: list[list[Any]]) -> Array:
        """Read the losses back: the means over the shares of each batch."""
        return np.array([np.mean([each.fetch() for each in shares]) for shares in handles], np.float32)

    def outputs(self, batch: list[Tensors]) -> dict[str, Array]:
        """Forward in inference mode, on the workers."""
        found = [self._coordinator.schedule(self.infer, (share,)) for share in batch]
        shares = [each.fetch() for each in found]
        return {name: np.concatenate([each[name] for each in shares]) for name in shares[0]}

    def gradients(self, batch: list[Tensors]) -> tuple[dict[str, Array], float, dict[str, Array]]:
        """Forward in training mode and backward of every share, without updates, and the mean of the gradients."""
        found = [self._coordinator.schedule(self._backward, (share,)) for share in batch]
        outputs, losses, gradients = zip(*[each.fetch() for each in found], strict=True)
        mean = [np.mean(each, axis=0) for each in zip(*gradients, strict=True)]
        named = {name: self._canonical(name, tf.constant(g)) for name, g in zip(self._trained, mean, strict=True)}
        return {name: np.concatenate([each[name] for each in outputs]) for name in outputs[0]}, np.mean(losses), named


def divided(batch: Tensors, count: int) -> list[Tensors]:
    """Return the shares of a batch, consecutive samples each."""
    pieces = {name: tf.split(tensor, count) for name, tensor in batch.items()}
    return [{name: each[number] for name, each in pieces.items()} for number in range(count)]
