"""Data parallel with Horovod: every rank has all variables, and averages each gradient with those of the other ranks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import horovod.tensorflow as hvd
import tensorflow as tf

from steelyard_worker.frameworks.tensorflow import mistakes, optimizers
from steelyard_worker.frameworks.tensorflow.replicas import STATISTICS
from steelyard_worker.frameworks.tensorflow.trainer import Learner

if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import ModuleType

    from steelyard_worker.case import Optimizer
    from steelyard_worker.frameworks.base import Array
    from steelyard_worker.frameworks.tensorflow.layers import Variables
    from steelyard_worker.frameworks.tensorflow.predictor import Tensors, Wrap
    from steelyard_worker.network import Network


class HorovodTrainer(Learner):
    """One of several equal networks, which gets a share of every batch."""

    def __init__(
        self,
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
        """`outer` wraps what exchanges gradients. `compiled`: what a rank computes alone is wrapped by `wrap`, by itself."""
        super().__init__(wrap, variables, implementation, sizes, network, weights, loss)
        self._rule = optimizers.update_rule(optimizer, self._trained, kernel, rates)
        self._update: optimizers.Update = self._rule
        self._differentiate = self._gradients
        if compiled:
            self._differentiate, self._update = wrap(self._differentiate), wrap(self._update)
        self._backward, self.train_step = outer(self._averaged), outer(self.whole_step)
        self._statistics = [each for name, each in self._named.items() if name.endswith(STATISTICS)]

    def _averaged(self, batch: Tensors) -> tuple[Tensors, tf.Tensor, list[tf.Tensor]]:
        """Return outputs and loss of a share, and the gradients of the whole batch, as `hvd.DistributedGradientTape` does."""
        outputs, loss, gradients = self._differentiate(batch)
        named = zip(self._trained, gradients, strict=True)
        return outputs, loss, [hvd.allreduce(each, op=hvd.Average, name=name) for name, each in named]

    def whole_step(self, batch: Tensors) -> tf.Tensor:
        """Forward, backward, exchange, update; traced for `train_step`."""
        _, loss, gradients = self._averaged(batch)
        self._update(gradients)
        return loss

    def step(self, batch: Tensors) -> tf.Tensor:
        """Forward, backward, exchange, update; the loss stays a tensor."""
        return self.train_step(batch)

    def restart(self, weights: Mapping[str, Array]) -> None:
        """Assign weights and the first state of the rule to the variables of this rank."""
        self._load(weights)
        self._rule.forget()

    def outputs(self, batch: Tensors) -> dict[str, Array]:
        """Forward in inference mode, with the statistics of the first rank."""
        self._take_statistics()
        return super().outputs(batch)

    def state(self) -> dict[str, Array]:
        """Return all variables, with the statistics of the first rank."""
        self._take_statistics()
        return super().state()

    def _take_statistics(self) -> None:
        if self._statistics:
            hvd.broadcast_variables(self._statistics, root_rank=0)


class HorovodReduce:
    """The mean of a buffer over all ranks, by itself, in a graph of its own."""

    name = "horovod.tensorflow.allreduce"
    mean = True

    def __init__(self, array: Array) -> None:
        self._buffer = tf.constant(array)
        self._function = tf.function(lambda own: hvd.allreduce(own, op=hvd.Average, name="buffer"), autograph=False)

    def __call__(self) -> None:
        """Run the graph; on a CPU it returns when it has finished."""
        self._result = self._function(self._buffer)
        tf.raw_ops.SyncDevice()

    def result(self) -> Array:
        """Copy the result to the host."""
        found: Array = self._result.numpy()
        return found
