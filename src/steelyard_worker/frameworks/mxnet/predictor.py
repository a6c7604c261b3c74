"""One Gluon network with its weights, and its forward pass in inference mode."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import mxnet as mx
import numpy as np
from mxnet import gluon, nd

from steelyard_worker import accumulation, dropout, probes
from steelyard_worker.case import OWN
from steelyard_worker.frameworks import named_tensors
from steelyard_worker.frameworks.mxnet import layers, recurrent
from steelyard_worker.probes import probe_output
from steelyard_worker.protocol import Refusal

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence
    from pathlib import Path
    from types import ModuleType

    from mxnet.nd import NDArray

    from steelyard_worker.batches import Batch
    from steelyard_worker.case import Settings
    from steelyard_worker.exchange import Signature
    from steelyard_worker.frameworks.base import Array
    from steelyard_worker.frameworks.mxnet.running_statistics import Shapes
    from steelyard_worker.network import Network


class Forward(gluon.HybridBlock):
    """A network as a block that counts the graphs which hybridizing makes of it.

    `by_shape`: there is a graph for every shape of the inputs, as with MXNet's bucketing. A network that unrolls loops over axes
    of its inputs gets the shapes in `fit`.
    """

    def __init__(self, network: gluon.HybridBlock) -> None:
        super().__init__(prefix="")
        self.network = network
        self.graphs = 0
        self.by_shape = False
        self._of_shape: dict[Any, tuple[Any, ...]] = {}

    def fit(self, shapes: Shapes) -> None:
        """Tell a network that unrolls loops the shapes of its inputs."""
        if self.by_shape and hasattr(self.network, "fit"):
            self.network.fit(*shapes)

    def forward(self, *arguments: Any) -> Any:
        """Run the block on arrays or symbols."""
        if self.by_shape and not self._active:
            self.fit(shapes_of(arguments))
        return super().forward(*arguments)

    def _call_cached_op(self, *arguments: Any) -> Any:
        if not self.by_shape:
            return super()._call_cached_op(*arguments)
        shape = shapes_of(arguments)
        if shape not in self._of_shape:
            self.fit(shape)
        self._cached_graph, self._cached_op, self._cached_op_args = self._of_shape.get(shape, ((), None, []))
        found = super()._call_cached_op(*arguments)
        self._of_shape[shape] = self._cached_graph, self._cached_op, self._cached_op_args
        return found

    def hybrid_forward(self, F: Any, *inputs: Any) -> Any:
        return self.network(*inputs)

    def _build_cache(self, *arguments: Any) -> None:
        self.graphs += 1
        super()._build_cache(*arguments)


def shapes_of(arrays: Sequence[NDArray]) -> Shapes:
    """Return the shapes of arrays."""
    return tuple(array.shape for array in arrays)


class Probe(gluon.HybridBlock):
    """One parameter, times 1 where MXNet builds a graph of this block and times 0 where it runs operator by operator."""

    def __init__(self, precision: str) -> None:
        super().__init__(prefix="")
        self.weight = self.params.get("weight", shape=(1,))
        self.cast(precision)

    def hybrid_forward(self, F: Any, x: Any, weight: Any) -> Any:
        return x * weight * float(F is mx.sym)


class Predictor:
    """One network without gradients; it is in inference mode, because nothing is recorded. Every pass is queued on the engine."""

    def __init__(
        self,
        settings: Settings,
        implementation: ModuleType,
        sizes: dict[str, Any],
        network: Network,
        weights: Mapping[str, Array],
        trained: frozenset[str] = frozenset(),
    ) -> None:
        self._context = self._place_of(settings)
        self._dtype = np.dtype(settings.precision)
        self._columns, self._outputs = tuple(implementation.INPUTS), implementation.OUTPUTS
        with recurrent.built_as(settings.knobs["lstm"]), dropout.built_as(settings.knobs["dropout"]):
            self._network: gluon.HybridBlock = implementation.build(sizes)
        if trained:
            layers.choose_gradients(self._network, settings.knobs["embedding"])
        self._network.cast(settings.precision)
        self._named: dict[str, gluon.Parameter] = named_tensors.distinct(
            network, implementation.variables(self._network)
        )
        # Before loading, because MXNet allocates the gradient of a parameter with its data.
        for name in self._named.keys() - trained:
            self._named[name].grad_req = "null"
        if accumulation.parts_of(settings) > 1:
            for name in trained:
                self._named[name].grad_req = "add"
        self._load(network, weights)
        block, self._changing = self._block(implementation, settings), sizes.get("lengths") == OWN
        # Parts of a batch have another shape than the whole one, whose outputs are computed as well.
        several = self._changing or accumulation.parts_of(settings) > 1
        block.by_shape = several and settings.knobs["shapes"] == "static"
        if self._changing and not block.by_shape:
            _refuse_unrolled(self._network)
        self.forward = hybridized(block, settings)
        self.latest: NDArray | None = None

    def _place_of(self, settings: Settings) -> Any:
        """Return where parameters and batches are placed."""
        return context_of(settings)

    def _load(self, network: Network, weights: Mapping[str, Array]) -> None:
        """Load the weights; parameters that are none of the network's tensors are zero."""
        layers.load(self._named, network, weights, lambda _: self._context)
        for parameter in set(self._network.collect_params().values()) - set(self._named.values()):
            parameter.initialize(mx.init.Zero(), self._context)

    def _block(self, implementation: ModuleType, settings: Settings) -> Forward:
        """Return the block that becomes one graph."""
        del implementation, settings
        return Forward(self._network)

    @property
    def graphs(self) -> int:
        """Number of graphs built so far: one if hybridized, none if imperative."""
        return int(self.forward.graphs)

    def put(self, batch: Batch) -> tuple[NDArray, ...]:
        """Copy a canonical batch to the device: floats in the precision of the run, integers as int32."""
        return tuple(self._typed(batch[name], self._context) for name in self._columns)

    def _typed(self, array: Array | NDArray, context: mx.Context) -> NDArray:
        dtype = self._dtype if np.issubdtype(array.dtype, np.floating) else np.dtype(np.int32)
        return nd.array(array, context, dtype)

    def infer(self, batch: tuple[NDArray, ...]) -> Sequence[NDArray]:
        """Queue the forward pass."""
        found = self.forward(*batch)
        outputs = found if isinstance(found, (tuple, list)) else (found,)
        self.latest = outputs[0]
        return outputs

    def synchronise(self) -> None:
        """Wait for everything queued on the engine; errors of earlier operators are raised here."""
        nd.waitall()

    def outputs(self, batch: tuple[NDArray, ...]) -> dict[str, Array]:
        """Forward in inference mode."""
        return self._canonical(self.infer(batch))

    def _canonical(self, outputs: Sequence[NDArray]) -> dict[str, Array]:
        names = self._outputs[: len(outputs)]  # the last names may belong to heads that only some presets have
        return dict(zip(names, (output.asnumpy() for output in outputs), strict=True))

    def inner(self, batch: tuple[NDArray, ...], names: Collection[str]) -> dict[str, Array]:
        """Run forward in inference mode, always operator by operator; the output of a block counts under the block's prefix."""
        self._network.hybridize(active=False)
        self.forward.fit(shapes_of(batch))

        def hook(block: gluon.Block) -> None:
            if block.prefix.rstrip(".") in names:
                block.register_forward_hook(keep)

        with probes.collected() as found:
            self._network.apply(hook)
            self._network(*batch)
        return {name: found[name].asnumpy() for name in found.keys() & names}

    def export(self, batch: tuple[NDArray, ...], path: Path) -> Signature:
        """Write the graph as an ONNX file for batches of this shape; Refusal: an operator has no counterpart."""
        from steelyard_worker.frameworks.mxnet import export  # it needs the package onnx

        return export.export(self.forward, batch, self._columns, tuple(self.outputs(batch)), path)

    def state(self) -> dict[str, Array]:
        """Return parameters and batch-norm statistics; MXNet's layouts are the canonical ones."""
        return {name: parameter.data().asnumpy() for name, parameter in self._named.items()}


def _refuse_unrolled(network: gluon.HybridBlock) -> None:
    """Refuse one graph for all shapes where a network has a loop that its graph unrolls."""
    if hasattr(network, "fit") and network.unrolls:
        raise Refusal("unsupported", "MXNet unrolls a loop of this network, so each shape needs its own graph.")


def context_of(settings: Settings) -> mx.Context:
    """Return the device of the run."""
    return mx.gpu() if settings.device == "cuda" else mx.cpu()


def hybridized(block: gluon.HybridBlock, settings: Settings) -> gluon.HybridBlock:
    """Return the block as the mode runs it."""
    if settings.mode == "hybridized":
        block.hybridize(static_alloc=True, static_shape=settings.knobs["shapes"] == "static")
    return block


def keep(block: gluon.Block, inputs: Any, output: Any) -> None:
    """Keep the output of a block."""
    del inputs
    probe_output(block.prefix.rstrip("."), output, nd.NDArray)
