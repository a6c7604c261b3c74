"""One network with its weights, and its forward pass as a function that runs eagerly, as a graph or compiled by XLA."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import tensorflow as tf

from steelyard_worker import probes
from steelyard_worker.frameworks import named_tensors
from steelyard_worker.frameworks.tensorflow import layouts
from steelyard_worker.tensors import ALIGNMENT

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping
    from types import ModuleType

    from steelyard_worker.batches import Batch
    from steelyard_worker.frameworks.base import Array
    from steelyard_worker.frameworks.tensorflow.layers import Variables
    from steelyard_worker.network import Network

    Wrap = Callable[[Callable[..., Any]], Callable[..., Any]]
    Tensors = dict[str, tf.Tensor]

# Bytes from which on a second copy of a tensor would noticeably delay the start of a worker.
LARGE = 2**20


class Predictor:
    """Variables, the forward pass over them, and conversion to and from canonical arrays."""

    def __init__(
        self,
        wrap: Wrap,
        variables: Variables,
        implementation: ModuleType,
        sizes: dict[str, Any],
        network: Network,
        weights: Mapping[str, Array],
    ) -> None:
        self._forward = implementation.build(sizes, variables)
        self.inputs, self._dtype, self._named = implementation.INPUTS, variables.dtype, variables.named
        self._kinds = {parameter.name: parameter.kind for parameter in network.parameters}
        self._network = network
        load(self._named, network, weights)
        self._wrap, self.infer = wrap, wrap(self._outputs)
        """Forward in inference mode; the outputs stay tensors."""

    def put(self, batch: Batch) -> Tensors:
        """Copy a canonical batch into tensors."""
        return {name: tf.constant(array) for name, array in self.native(batch).items()}

    def native(self, batch: Batch) -> Batch:
        """Return the batch in TensorFlow's layout: images NHWC, floats in the precision of the run, integers int32."""
        floating = self._dtype.as_numpy_dtype
        return {
            name: layouts.native("image" if array.ndim == 4 else name, array).astype(
                floating if np.issubdtype(array.dtype, np.floating) else np.int32, copy=False
            )
            for name, array in batch.items()
        }

    def _outputs(self, batch: Tensors, training: bool = False) -> Tensors:
        outputs: Tensors = self._forward(*(batch[name] for name in self.inputs), training=training)
        return outputs

    def synchronise(self) -> None:
        """Wait for every device; on CPU the work has finished when a call returns."""
        tf.test.experimental.sync_devices()

    def outputs(self, batch: Tensors) -> dict[str, Array]:
        """Forward in inference mode."""
        return {name: tensor.numpy() for name, tensor in self.infer(batch).items()}

    def inner(self, batch: Tensors, names: Collection[str]) -> dict[str, Array]:
        """Run forward in inference mode, as the mode runs it, with the inner tensors as its results."""
        return self._inner(batch, names, training=False)

    def _inner(self, batch: Tensors, names: Collection[str], training: bool) -> dict[str, Array]:
        def collect(batch: Tensors) -> Tensors:
            with probes.collected() as found:
                self._outputs(batch, training=training)
            return {name: found[name] for name in found.keys() & names}

        return {name: tensor.numpy() for name, tensor in self._wrap(collect)(batch).items()}

    def state(self) -> dict[str, Array]:
        """Return parameters and batch-norm statistics, canonical."""
        return {name: self._canonical(name, variable) for name, variable in self._named.items()}

    def _canonical(self, name: str, tensor: tf.Tensor | tf.Variable) -> Array:
        return layouts.canonical(self._kinds[name], tensor.numpy())


def load(named: dict[str, tf.Variable], network: Network, weights: Mapping[str, Array]) -> None:
    """Copy canonical weights into the variables, in TensorFlow's layouts."""
    kinds = {parameter.name: parameter.kind for parameter in network.parameters}
    shapes = {name: layouts.canonical_shape(kinds.get(name, ""), tuple(each.shape)) for name, each in named.items()}
    named_tensors.check(network, shapes)
    for name, kind in kinds.items():
        named[name].assign(_copied(layouts.native(kind, np.asarray(weights[name])), named[name].dtype))


def _copied(array: Array, dtype: tf.DType) -> tf.Tensor:
    """Return a tensor with its own memory; a large array is copied once, whereas `tf.constant` copies twice."""
    if array.nbytes < LARGE or array.ctypes.data % ALIGNMENT or not array.flags.writeable:
        return tf.constant(array, dtype)
    shared = tf.experimental.dlpack.from_dlpack(array.__dlpack__())
    return tf.cast(shared, dtype) if shared.dtype != dtype else tf.raw_ops.DeepCopy(x=shared)
