"""Data parallel by a strategy of `tf.distribute` that keeps all variables on every replica: devices, or processes with one each.

Every replica differentiates the loss of its share of the batch. The replicas average their gradients, and each applies the same
update to its own variables. The averages are the same bits everywhere, so the variables stay equal without being exchanged.
"""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Any

import numpy as np
import tensorflow as tf

from steelyard_worker import probes
from steelyard_worker.frameworks.tensorflow import mistakes, optimizers
from steelyard_worker.frameworks.tensorflow.layers import Variables
from steelyard_worker.frameworks.tensorflow.trainer import Learner

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping
    from types import ModuleType

    from steelyard_worker.batches import Batch
    from steelyard_worker.case import Optimizer
    from steelyard_worker.frameworks.base import Array
    from steelyard_worker.frameworks.tensorflow.predictor import Tensors, Wrap
    from steelyard_worker.network import Network

STATISTICS = (".running_mean", ".running_var")


class ReplicaVariables(Variables):
    """Variables of every replica. Running statistics are kept by each replica, and their mean is what is read outside."""

    own_statistics = True

    def new(self, name: str, *shape: int) -> tf.Variable:
        """Create a variable on every replica."""
        empty = tf.raw_ops.Empty(shape=shape, dtype=self.dtype, init=False)
        statistic = name.endswith(STATISTICS)
        own = statistic and self.own_statistics
        self.named[name] = tf.Variable(
            empty,
            name=name.replace(".", "_"),
            trainable=not statistic,
            synchronization=tf.VariableSynchronization.ON_READ if own else tf.VariableSynchronization.AUTO,
            aggregation=tf.VariableAggregation.MEAN if statistic else tf.VariableAggregation.NONE,
        )
        return self.named[name]


class ReplicaTrainer(Learner):
    """A network on every replica of a strategy. A process with several replicas gets whole batches and divides them."""

    kind = ReplicaVariables

    def __init__(
        self,
        strategy: tf.distribute.Strategy,
        outer: Wrap,
        compiled: bool,
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
        """`outer` wraps what exchanges gradients. `compiled`: what a replica computes alone is wrapped by `wrap`, by itself."""
        self._strategy, self._devices = strategy, strategy.extended.worker_devices
        share = sizes | {"batch": sizes["batch"] // len(self._devices)}
        replicated = self.kind(**{each.name: getattr(variables, each.name) for each in fields(variables)})
        with strategy.scope():
            super().__init__(wrap, replicated, implementation, share, network, weights, loss)
        self._memories = self._rules_of(optimizer, kernel, rates)
        self._differentiate = self._gradients
        self._rules: list[optimizers.Update] = [*self._memories]
        if compiled:
            self._differentiate, self._rules = wrap(self._gradients), [wrap(rule) for rule in self._rules]
        # In inference, statistics of all replicas are read, on the first device.
        self._outer, self.infer = outer, outer(self._outputs)
        self._backward, self.train_step = outer(self._on_all(self._averaged)), outer(self.whole_step)

    def _rules_of(self, optimizer: Optimizer, kernel: str, rates: Array | None) -> list[optimizers.Rule]:
        """Return the update rule of each replica of this process, for its own variables."""
        local = {name: self._strategy.experimental_local_results(each) for name, each in self._trained.items()}
        found = []
        for number, device in enumerate(self._devices):
            with tf.device(device):
                own = {name: variables[number] for name, variables in local.items()}
                found.append(optimizers.update_rule(optimizer, own, kernel, rates))
        return found

    def _on_all(self, function: Callable[[Tensors], Any]) -> Callable[[Tensors], Any]:
        return lambda batch: self._strategy.run(function, (batch,))

    def _averaged(self, share: Tensors) -> tuple[Tensors, tf.Tensor, list[tf.Tensor]]:
        """Return outputs and loss of a share, and the gradients of the whole batch; called on every replica."""
        outputs, loss, gradients = self._differentiate(share)
        context = tf.distribute.get_replica_context()
        return outputs, loss, context.all_reduce(tf.distribute.ReduceOp.MEAN, gradients)

    def _replica_step(self, share: Tensors) -> tf.Tensor:
        _, loss, gradients = self._averaged(share)
        self._rules[self._number()](gradients)
        return loss

    def _number(self) -> int:
        """Return the number of this replica among those of its process."""
        number = tf.distribute.get_replica_context().replica_id_in_sync_group
        return int(tf.get_static_value(number)) if len(self._devices) > 1 else 0

    def whole_step(self, batch: Any) -> Any:
        """Forward, backward, exchange and update on all replicas; traced for `train_step`."""
        return self._strategy.run(self._replica_step, (batch,))

    def step(self, batch: Any) -> Any:
        """Forward, backward, exchange and update; the losses of the replicas stay tensors."""
        return self.train_step(batch)

    def restart(self, weights: Mapping[str, Array]) -> None:
        """Assign weights to the variables of all replicas, and let the rule of each forget."""
        with self._strategy.scope():
            self._load(weights)
        for rule in self._memories:
            rule.forget()

    def synchronise(self) -> None:
        """Wait for the devices of this process; those of other workers cannot be asked."""
        for device in self._devices:
            with tf.device(device):
                tf.raw_ops.SyncDevice()

    def losses(self, handles: list[Any]) -> Array:
        """Read the losses back; several replicas have equal shares, so the loss of the batch is the mean of theirs."""
        found = [[each.numpy() for each in self._strategy.experimental_local_results(handle)] for handle in handles]
        return np.array([np.mean(each, dtype=np.float64) for each in found], np.float32)

    def put(self, batch: Batch) -> Any:
        """Copy a canonical batch to the devices, a share to each."""
        native, count = self.native(batch), len(self._devices)
        if count == 1:
            return {name: tf.constant(array) for name, array in native.items()}
        shares = {name: np.array_split(array, count) for name, array in native.items()}

        def share(context: tf.distribute.ReplicaContext) -> Tensors:
            number = context.replica_id_in_sync_group
            with tf.device(self._devices[number]):
                return {name: tf.constant(arrays[number]) for name, arrays in shares.items()}

        return self._strategy.experimental_distribute_values_from_function(share)

    def _joined(self, value: Any) -> Array:
        """Return what the replicas of this process have found for their shares, one after the other."""
        return np.concatenate([each.numpy() for each in self._strategy.experimental_local_results(value)])

    def outputs(self, batch: Any) -> dict[str, Array]:
        """Run forward in inference mode over the whole batch, with the statistics that `state` returns."""
        return super().outputs({name: tf.constant(self._joined(value)) for name, value in batch.items()})

    def gradients(self, batch: Any) -> tuple[dict[str, Array], float, dict[str, Array]]:
        """Forward in training mode and backward on all replicas; the gradients are averaged as in a step."""
        outputs, loss, found = self._backward(batch)
        first = [self._strategy.experimental_local_results(gradient)[0] for gradient in found]
        gradients = {name: self._canonical(name, g) for name, g in zip(self._trained, first, strict=True)}
        losses = [float(each) for each in self._strategy.experimental_local_results(loss)]
        return {name: self._joined(each) for name, each in outputs.items()}, float(np.mean(losses)), gradients

    def inner(self, batch: Any, names: Collection[str]) -> dict[str, Array]:
        """Run forward in training mode on all replicas, with the inner tensors, flattened, as results."""

        def collect(share: Tensors) -> Tensors:
            with probes.collected() as found:
                self._outputs(share, training=True)
            return {name: tf.reshape(found[name], (-1,)) for name in found.keys() & names}

        found = self._outer(self._on_all(collect))(batch)
        return {name: self._joined(value) for name, value in found.items()}
