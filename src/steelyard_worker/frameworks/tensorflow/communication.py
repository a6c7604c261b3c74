"""The all-reduce of a strategy of `tf.distribute`, as its training steps call it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import tensorflow as tf

if TYPE_CHECKING:
    from steelyard_worker.frameworks.base import Array


class ReplicaReduce:
    """The sum of a buffer of every replica, in a graph of its own."""

    name = "tf.distribute.ReplicaContext.all_reduce"
    mean = False

    def __init__(self, array: Array, strategy: tf.distribute.Strategy) -> None:
        self._buffer = tf.constant(array)

        def reduced(own: tf.Tensor) -> tf.Tensor:
            # The strategy exchanges between the places of tensors, and an argument of a graph has none before it is used.
            return tf.distribute.get_replica_context().all_reduce(tf.distribute.ReduceOp.SUM, tf.identity(own))

        self._function = tf.function(lambda own: strategy.run(reduced, (own,)), autograph=False)

    def __call__(self) -> None:
        """Run the graph; on a CPU it returns when it has finished."""
        self._result = self._function(self._buffer)
        tf.raw_ops.SyncDevice()

    def result(self) -> Array:
        """Copy the result to the host."""
        found: Array = self._result.numpy()
        return found
