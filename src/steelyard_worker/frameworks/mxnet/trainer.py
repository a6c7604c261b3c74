"""One Gluon network with its update rule."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import mxnet as mx
import numpy as np
from mxnet import autograd, gluon, nd

from steelyard_worker.frameworks.mxnet import layers, optimizers
from steelyard_worker.frameworks.mxnet.running_statistics import RunningStatistics

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from types import ModuleType

    from mxnet.nd import NDArray

    from steelyard_worker.batches import Batch
    from steelyard_worker.case import Optimizer, Settings
    from steelyard_worker.frameworks.base import Array
    from steelyard_worker.network import Network


class Objective(gluon.HybridBlock):
    """Network and loss in one block, so that hybridizing makes one graph of them: inputs, targets -> (loss, *outputs)."""

    def __init__(self, network: gluon.HybridBlock, loss: gluon.HybridBlock, inputs: int) -> None:
        super().__init__(prefix="")
        self.network, self.loss, self.inputs = network, loss, inputs
        self.graphs = 0

    def hybrid_forward(self, F: Any, *arguments: Any) -> tuple[Any, ...]:
        found = self.network(*arguments[: self.inputs])
        outputs = found if isinstance(found, (tuple, list)) else (found,)
        return self.loss(*outputs, *arguments[self.inputs :]), *(F.BlockGrad(output) for output in outputs)

    def _build_cache(self, *arguments: Any) -> None:
        self.graphs += 1
        super()._build_cache(*arguments)


class Probe(gluon.HybridBlock):
    """One parameter, times 1 where MXNet builds a graph of this block and times 0 where it runs operator by operator."""

    def __init__(self, precision: str) -> None:
        super().__init__(prefix="")
        self.weight = self.params.get("weight", shape=(1,))
        self.cast(precision)

    def hybrid_forward(self, F: Any, x: Any, weight: Any) -> Any:
        return x * weight * float(F is mx.sym)


def context_of(settings: Settings) -> mx.Context:
    """Return the device of the run."""
    return mx.gpu() if settings.device == "cuda" else mx.cpu()


def hybridized(block: gluon.HybridBlock, settings: Settings) -> gluon.HybridBlock:
    """Return the block as the mode runs it."""
    if settings.mode == "hybridized":
        block.hybridize(static_alloc=True, static_shape=True)
    return block


class Trainer:
    """One network with its update rule; everything between `put` and `losses` is queued on MXNet's engine."""

    def __init__(
        self, settings: Settings, implementation: ModuleType, sizes: dict[str, Any], network: Network,
        weights: Mapping[str, Array], optimizer: Optimizer,
    ) -> None:  # fmt: skip
        self._context = context_of(settings)
        self._dtype = np.dtype(settings.precision)
        self._order, self._outputs = (*implementation.INPUTS, *implementation.TARGETS), implementation.OUTPUTS
        block, loss = implementation.build(sizes), implementation.loss()
        block.cast(settings.precision)
        loss.cast(settings.precision)
        self._named: dict[str, gluon.Parameter] = implementation.variables(block)
        layers.load(self._named, network, weights, self._context)
        for parameter in set(block.collect_params().values()) - set(self._named.values()):
            parameter.initialize(mx.init.Zero(), self._context)
        self._trained = {p.name: self._named[p.name] for p in network.parameters if p.trainable}
        for name in self._named.keys() - self._trained.keys():
            self._named[name].grad_req = "null"
        shapes = {i.name: (sizes["batch"], *i.shape) for i in network.inputs if i.name in implementation.INPUTS}
        self._statistics = RunningStatistics(self._named, layers.batch_norms(block, shapes))
        self.objective = hybridized(Objective(block, loss, len(implementation.INPUTS)), settings)
        self.rule = optimizers.update_rule(optimizer, self._trained)
        self.latest: NDArray | None = None

    @property
    def graphs(self) -> int:
        """Number of graphs built so far: one for a hybridized trainer, none for an imperative one."""
        return self.objective.graphs

    def put(self, batch: Batch) -> tuple[NDArray, ...]:
        """Copy a canonical batch to the device: floats in the precision of the run, integers as int32."""
        return tuple(self._place(batch[name]) for name in self._order)

    def _place(self, array: Array | NDArray) -> NDArray:
        dtype = self._dtype if np.issubdtype(array.dtype, np.floating) else np.dtype(np.int32)
        return nd.array(array, self._context, dtype)

    def step(self, batch: tuple[NDArray, ...]) -> NDArray:
        """Queue forward, backward and update; batch-norm statistics change in backward (P-04)."""
        with autograd.record():
            loss = self.objective(*batch)[0]
        loss.backward()
        self.rule.step(1)  # divide by 1: the loss is already a mean (P-45)
        self._statistics.advance()
        self.latest = loss
        return loss

    def synchronise(self) -> None:
        """Wait for everything queued on the engine; errors of earlier operators are raised here."""
        nd.waitall()

    def losses(self, handles: list[NDArray]) -> Array:
        """Read the losses back."""
        return np.array([handle.asscalar() for handle in handles], np.float32)

    def gradients(self, batch: tuple[NDArray, ...]) -> tuple[dict[str, Array], float, dict[str, Array]]:
        """Forward in training mode and backward."""
        with autograd.record():
            loss, *outputs = self.objective(*batch)
        loss.backward()
        gradients = {name: parameter.grad().asnumpy() for name, parameter in self._trained.items()}
        return self._canonical(outputs), float(loss.asscalar()), gradients

    def outputs(self, batch: tuple[NDArray, ...]) -> dict[str, Array]:
        """Forward in inference mode, with the canonical running statistics instead of MXNet's own."""
        with self._statistics.in_place():
            return self._canonical(self.objective(*batch)[1:])

    def _canonical(self, outputs: Sequence[NDArray]) -> dict[str, Array]:
        names = self._outputs[: len(outputs)]  # the last names may belong to heads that only some presets have
        return dict(zip(names, (output.asnumpy() for output in outputs), strict=True))

    def state(self) -> dict[str, Array]:
        """Return parameters and batch-norm statistics; MXNet's layouts are the canonical ones."""
        found = {name: parameter.data().asnumpy() for name, parameter in self._named.items()}
        return found | self._statistics.canonical()
