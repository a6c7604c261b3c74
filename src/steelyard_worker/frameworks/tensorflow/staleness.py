"""How stale the gradients of a parameter server are: one more variable, which counts the updates of all workers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import tensorflow as tf

from steelyard_worker.frameworks.tensorflow.parameter_server import CoordinatingTrainer

if TYPE_CHECKING:
    from steelyard_worker.frameworks.base import Array
    from steelyard_worker.frameworks.tensorflow.predictor import Tensors


class CountingTrainer(CoordinatingTrainer):
    """A worker reads the count before it reads the weights, and again, adding 1, when it has the gradients."""

    def __init__(self, strategy: tf.distribute.ParameterServerStrategy, *arguments: Any) -> None:
        with strategy.scope():
            self._count = tf.Variable(0, trainable=False, dtype=tf.int64, name="updates")
        self._found: list[Any] = []
        super().__init__(strategy, *arguments)

    def whole_step(self, share: Tensors) -> tuple[tf.Tensor, tf.Tensor]:
        """Return the loss, and how many updates others have applied meanwhile; traced for `train_step`."""
        before = self._count.read_value()
        with tf.control_dependencies([before]):
            _, loss, gradients = self._gradients(share)
        with tf.control_dependencies(gradients):
            after = self._count.assign_add(1, read_value=True)
        self._update(gradients)
        return loss, after - before - 1

    def step(self, batch: list[Tensors] | Tensors) -> list[Any]:
        """Hand out one share for each worker, and keep what they return."""
        found = super().step(batch)
        self._found += found
        return found

    def losses(self, handles: list[list[Any]]) -> Array:
        """Read the losses back."""
        return np.array([np.mean([each.fetch()[0] for each in shares]) for shares in handles], np.float32)

    def staleness(self) -> Array:
        """Return how many updates of others each update of all workers has missed, int64, for all since the last call."""
        found = np.array([each.fetch()[1] for each in self._found], np.int64)
        self._found.clear()
        return found
