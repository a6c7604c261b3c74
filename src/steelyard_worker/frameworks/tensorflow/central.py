"""Data parallel with one copy of the variables: `tf.distribute.experimental.CentralStorageStrategy`.

Every device reads the variables from the device that stores them. The gradients are averaged there, and there is one update.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import tensorflow as tf

from steelyard_worker.frameworks.tensorflow import optimizers
from steelyard_worker.frameworks.tensorflow.replicas import ReplicaTrainer, ReplicaVariables

if TYPE_CHECKING:
    from steelyard_worker.case import Optimizer
    from steelyard_worker.frameworks.base import Array
    from steelyard_worker.frameworks.tensorflow.predictor import Tensors

STORE = "CPU:0"


class CentralVariables(ReplicaVariables):
    """Variables of which there is one; running statistics become the mean of what the devices assign."""

    own_statistics = False


class CentralTrainer(ReplicaTrainer):
    """A network whose variables are stored on one device, and computed with on all of them."""

    kind = CentralVariables

    def _rules_of(self, optimizer: Optimizer, kernel: str, rates: Array | None) -> list[optimizers.Rule]:
        """Return the one update rule, where the variables are."""
        with tf.device(STORE):
            return [optimizers.update_rule(optimizer, self._trained, kernel, rates)]

    def _replica_step(self, share: Tensors) -> tf.Tensor:
        _, loss, gradients = self._differentiate(share)
        tf.distribute.get_replica_context().merge_call(self._update_once, gradients)
        return loss

    def _update_once(self, strategy: tf.distribute.Strategy, *gradients: Any) -> None:
        """Average the gradients of all devices where the variables are, and update these."""
        pairs = list(zip(gradients, self._trained.values(), strict=True))
        means = strategy.extended.batch_reduce_to(tf.distribute.ReduceOp.MEAN, pairs)
        with tf.device(STORE):
            self._rules[0](means)
