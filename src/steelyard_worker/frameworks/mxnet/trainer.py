"""One Gluon network with its update rule."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import mxnet as mx
import numpy as np
from mxnet import autograd, nd

from steelyard_worker import accumulation, dropout, probes
from steelyard_worker.frameworks.mxnet import layers, optimizers
from steelyard_worker.frameworks.mxnet.predictor import Forward, Predictor, keep, shapes_of
from steelyard_worker.frameworks.mxnet.running_statistics import RunningStatistics

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from types import ModuleType

    from mxnet import gluon
    from mxnet.nd import NDArray

    from steelyard_worker.case import Optimizer, Settings
    from steelyard_worker.frameworks.base import Array
    from steelyard_worker.frameworks.mxnet.running_statistics import Shapes
    from steelyard_worker.network import Network


class Objective(Forward):
    """Network and loss in one block, so that hybridizing makes one graph of them: inputs, targets -> (loss, *outputs)."""

    def __init__(self, network: gluon.HybridBlock, loss: gluon.HybridBlock, inputs: int) -> None:
        super().__init__(network)
        self.loss, self.inputs = loss, inputs

    def hybrid_forward(self, F: Any, *arguments: Any) -> tuple[Any, ...]:
        found = self.network(*arguments[: self.inputs])
        outputs = found if isinstance(found, (tuple, list)) else (found,)
        return self.loss(*outputs, *arguments[self.inputs :]), *(F.BlockGrad(output) for output in outputs)


class Trainer(Predictor):
    """One network with its update rule; everything between `put` and `losses` is queued on MXNet's engine."""

    def __init__(
        self,
        settings: Settings,
        implementation: ModuleType,
        sizes: dict[str, Any],
        network: Network,
        weights: Mapping[str, Array],
        optimizer: Optimizer,
        rates: Array | None = None,
    ) -> None:
        trained = [p.name for p in network.parameters if p.trainable]
        self._parts = accumulation.parts_of(settings)
        super().__init__(settings, implementation, sizes, network, weights, frozenset(trained))
        self._inputs, self._columns = len(implementation.INPUTS), (*implementation.INPUTS, *implementation.TARGETS)
        self._trained = {name: self._named[name] for name in trained}
        shapes = {i.name: (sizes["batch"] // self._parts, *i.shape) for i in network.inputs}
        full = tuple(shapes[name] for name in implementation.INPUTS)
        self._statistics = self._running_statistics(
            self._named, partial(self._batch_norms, implementation.INPUTS), full
        )
        self._make_rule = partial(self._rule, optimizer, rates, settings.knobs["embedding"] == "lazy")
        self.rule = self._make_rule()
        self._drops = settings.knobs["dropout"] == dropout.ON

    def _running_statistics(self, *arguments: Any) -> RunningStatistics:
        return RunningStatistics(*arguments)

    def _rule(self, optimizer: Optimizer, rates: Array | None, lazy: bool) -> Any:
        return optimizers.update_rule(optimizer, self._trained, rates, lazy)

    def _block(self, implementation: ModuleType, settings: Settings) -> Forward:
        loss = implementation.loss()
        loss.cast(settings.precision)
        return Objective(self._network, loss, len(implementation.INPUTS))

    def _batch_norms(self, names: tuple[str, ...], shapes: Shapes) -> dict[str, layers.BatchNorm]:
        self.forward.fit(shapes)
        return layers.batch_norms(self._network, dict(zip(names, shapes, strict=True)))

    def step(self, batch: tuple[NDArray, ...]) -> NDArray:
        """Queue forward, backward and update; batch-norm statistics change in backward (P-04)."""
        loss = self._differentiate(batch) if self._parts == 1 else self._add_gradients(batch)
        self.rule.step(1)  # divide by 1: the loss is already a mean (P-45)
        self.latest = loss
        return loss

    def _differentiate(self, batch: tuple[NDArray, ...], share: float = 1.0) -> NDArray:
        """Queue forward and backward; gradients are a share of the loss's. Returns the loss."""
        self._statistics.advance(shapes_of(batch[: self._inputs]) if self._changing else None)
        with autograd.record():
            loss = self.forward(*batch)[0]
        loss.backward(None if share == 1 else nd.full(loss.shape, share, loss.context, loss.dtype))
        return loss

    def _add_gradients(self, batch: tuple[NDArray, ...]) -> NDArray:
        """Queue forward and backward of one part of the batch after the other; returns the mean of their losses."""
        parts = accumulation.parts_for(self._parts, len(batch[0]))
        size = len(batch[0]) // parts
        self._begin_gradients()
        total = nd.zeros((1,), self._context, self._dtype)
        for start in range(0, parts * size, size):
            part = tuple(column[start : start + size] for column in batch)
            total += self._differentiate(part, 1 / parts).reshape(1) / parts
        return total

    def _begin_gradients(self) -> None:
        """Set gradients that backward passes add to back to zero."""
        if self._parts > 1:
            for parameter in self._trained.values():
                parameter.zero_grad()

    def restart(self, weights: Mapping[str, Array]) -> None:
        """Copy weights into the parameters' own arrays, which graphs have, and make the rule again: it is part of no graph.

        A store of ranks has no way to forget: as with a second trainer, the new rule has keys of its own there.
        """
        nd.waitall()
        for name, parameter in self._named.items():
            array = np.asarray(weights[name], parameter.dtype, order="C")
            # Not `set_data`, which Gluon refuses for parameters that servers update. Through an array of MXNet, because NumPy's
            # cannot be copied into one that lies in oneDNN's layout, as weights of convolutions do after a forward pass.
            for each in parameter.list_data():
                nd.array(array, each.context, each.dtype).copyto(each)
        self._statistics.restart()
        self.rule = self._make_rule()
        if self._drops:
            mx.random.seed(dropout.SEED)
        nd.waitall()

    def losses(self, handles: list[NDArray]) -> Array:
        """Read the losses back."""
        return np.array([handle.asscalar() for handle in handles], np.float32)

    def gradients(self, batch: tuple[NDArray, ...]) -> tuple[dict[str, Array], float, dict[str, Array]]:
        """Forward in training mode and backward."""
        self._begin_gradients()
        with autograd.record():
            loss, *outputs = self.forward(*batch)
        loss.backward()
        gradients = {name: parameter.grad().asnumpy() for name, parameter in self._trained.items()}
        return self._canonical(outputs), float(loss.asscalar()), gradients

    def outputs(self, batch: tuple[NDArray, ...]) -> dict[str, Array]:
        """Forward in inference mode, with the canonical running statistics instead of MXNet's own."""
        with self._statistics.in_place():
            return self._canonical(self.forward(*batch)[1:])

    def inner(self, batch: tuple[NDArray, ...], names: Collection[str]) -> dict[str, Array]:
        """Run forward in training mode, always operator by operator; the output of a block counts under the block's prefix."""
        network = self._network
        network.hybridize(active=False)
        self.forward.fit(shapes_of(batch))

        def hook(block: gluon.Block) -> None:
            if block.prefix.rstrip(".") in names:
                block.register_forward_hook(keep)

        with probes.collected() as found, autograd.train_mode():
            network.apply(hook)
            network(*batch[: self._inputs])
        return {name: found[name].asnumpy() for name in found.keys() & names}

    def state(self) -> dict[str, Array]:
        """Return parameters and batch-norm statistics, with the canonical running variances."""
        return super().state() | self._statistics.canonical()
