"""One network with its update rule, as functions that run eagerly, as graphs or compiled by XLA; `fitting` has that of Keras."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import tensorflow as tf

from steelyard_worker import accumulation
from steelyard_worker.frameworks.tensorflow import mistakes, optimizers
from steelyard_worker.frameworks.tensorflow.predictor import Predictor, load

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from types import ModuleType

    from steelyard_worker.case import Optimizer
    from steelyard_worker.frameworks.base import Array
    from steelyard_worker.frameworks.tensorflow.layers import Variables
    from steelyard_worker.frameworks.tensorflow.predictor import Tensors, Wrap
    from steelyard_worker.network import Network


class Learner(Predictor):
    """A predictor with a loss and its gradients."""

    def __init__(
        self,
        wrap: Wrap,
        variables: Variables,
        implementation: ModuleType,
        sizes: dict[str, Any],
        network: Network,
        weights: Mapping[str, Array],
        loss: str = mistakes.RIGHT,
    ) -> None:
        super().__init__(wrap, variables, implementation, sizes, network, weights)
        self._objective = mistakes.objective(implementation.loss, loss)
        self._loss, self._wrap, self._backward = implementation.loss, wrap, wrap(self._gradients)
        self._trained = {p.name: self._named[p.name] for p in network.parameters if p.trainable}

    def _gradients(
        self, batch: Tensors, sparse: frozenset[str] = frozenset()
    ) -> tuple[Tensors, tf.Tensor, list[tf.Tensor | tf.IndexedSlices]]:
        variables = list(self._trained.values())
        with tf.GradientTape(watch_accessed_variables=False) as tape:
            tape.watch(variables)
            outputs = self._outputs(batch, training=True)
            loss, differentiated = self._objective(outputs, batch)
        # Gradients of embeddings are IndexedSlices; optimizers need the sum over repeated ids (P-29), but for sparse updates.
        found = zip(self._trained, tape.gradient(differentiated, variables), strict=True)
        return outputs, loss, [g if name in sparse else tf.convert_to_tensor(g) for name, g in found]

    def losses(self, handles: list[tf.Tensor]) -> Array:
        """Read the losses back."""
        return np.array([handle.numpy() for handle in handles], np.float32)

    def gradients(self, batch: Tensors) -> tuple[dict[str, Array], float, dict[str, Array]]:
        """Forward in training mode and backward."""
        outputs, loss, found = self._backward(batch)
        gradients = {name: self._canonical(name, g) for name, g in zip(self._trained, found, strict=True)}
        return {name: tensor.numpy() for name, tensor in outputs.items()}, float(loss), gradients

    def inner(self, batch: Tensors, names: Collection[str]) -> dict[str, Array]:
        """Run forward in training mode, as the mode runs it, with the inner tensors as its results."""
        return self._inner(batch, names, training=True)

    def _load(self, weights: Mapping[str, Array]) -> None:
        """Assign weights to the variables, which the functions that were traced have captured."""
        load(self._named, self._network, weights)


class Trainer(Learner):
    """A network with an update rule; `step` calls `train_step`."""

    def __init__(
        self,
        wrap: Wrap,
        variables: Variables,
        implementation: ModuleType,
        sizes: dict[str, Any],
        network: Network,
        weights: Mapping[str, Array],
        optimizer: Optimizer,
        kernel: str,
        rates: Array | None = None,
        embedding: str = "dense",
        loss: str = mistakes.RIGHT,
        parts: int = 1,
    ) -> None:
        super().__init__(wrap, variables, implementation, sizes, network, weights, loss)
        self._parts = parts
        tables = [name for name in self._trained if self._kinds[name] == "embedding" and embedding == "sparse"]
        self._update = optimizers.update_rule(optimizer, self._trained, kernel, rates, tables)
        self._tables, self.train_step = frozenset(tables), wrap(self.whole_step)

    def whole_step(self, batch: Tensors) -> tf.Tensor:
        """Forward, backward, update; traced for `train_step`."""
        if self._parts == 1:
            _, loss, gradients = self._gradients(batch, self._tables)
        else:
            loss, gradients = self._added(batch)
        self._update(gradients)
        return loss

    def _added(self, batch: Tensors) -> tuple[tf.Tensor, list[tf.Tensor]]:
        """Return the mean loss and the mean gradients of parts of the batch, which are computed one after the other."""
        samples = next(iter(batch.values())).shape[0]  # None: of any number, as batches of a training are
        parts = self._parts if samples is None else accumulation.parts_for(self._parts, samples)
        shares = {name: tf.reshape(each, (parts, -1, *each.shape[1:])) for name, each in batch.items()}

        def add(part: tf.Tensor, total: tf.Tensor, *gradients: tf.Tensor) -> tuple[tf.Tensor, ...]:
            _, loss, found = self._gradients({name: each[part] for name, each in shares.items()})
            return part + 1, total + loss, *(a + b for a, b in zip(gradients, found, strict=True))

        none = [tf.zeros_like(variable) for variable in self._trained.values()]
        first = tf.constant(0), tf.zeros((), none[0].dtype), *none
        _, loss, *total = tf.while_loop(
            lambda part, *_: part < parts, add, first, parallel_iterations=1, maximum_iterations=parts
        )
        return loss / parts, [gradient / parts for gradient in total]

    def step(self, batch: Tensors) -> tf.Tensor:
        """Forward, backward, update; the loss stays a tensor."""
        return self.train_step(batch)

    def restart(self, weights: Mapping[str, Array]) -> None:
        """Assign weights and the first state of the rule to the variables that `train_step` uses."""
        self._load(weights)
        self._update.forget()
