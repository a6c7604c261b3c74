"""Several devices that one process drives: Gluon's parameters on each, shares of every batch, and a store that adds gradients."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import mxnet as mx
import numpy as np
from mxnet import autograd, gluon

from steelyard_worker.frameworks.mxnet import optimizers, stores
from steelyard_worker.frameworks.mxnet.predictor import Probe, context_of, shapes_of
from steelyard_worker.frameworks.mxnet.running_statistics import RunningStatistics
from steelyard_worker.frameworks.mxnet.shares import SharingTrainer
from steelyard_worker.protocol import Refusal

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from types import ModuleType

    from mxnet.gluon import Parameter
    from mxnet.nd import NDArray

    from steelyard_worker.batches import Batch
    from steelyard_worker.case import Optimizer, Settings
    from steelyard_worker.frameworks.base import Array
    from steelyard_worker.network import Network

    Shares = list[tuple[NDArray, ...]]


class DeviceTrainer(SharingTrainer):
    """One network on several devices, each of which computes a share of every batch. `store`: the type of MXNet's store."""

    def __init__(
        self,
        store: str,
        parts: int,
        settings: Settings,
        implementation: ModuleType,
        sizes: dict[str, Any],
        network: Network,
        weights: Mapping[str, Array],
        optimizer: Optimizer,
        rates: Array | None = None,
    ) -> None:
        self._store, self._devices = store, devices(settings, parts)
        share = sizes | {"batch": sizes["batch"] // parts}
        super().__init__(settings, implementation, share, network, weights, optimizer, rates)

    def _place_of(self, settings: Settings) -> Any:
        del settings
        return self._devices

    def _rule(self, optimizer: Optimizer, rates: Array | None, lazy: bool) -> Any:
        return _rule(optimizer, self._trained, rates, lazy, self._store, len(self._devices))

    def put(self, batch: Batch) -> Shares:
        """Divide a canonical batch among the devices."""
        columns = [
            gluon.utils.split_and_load(self._typed(batch[name], self._devices[0]), self._devices)
            for name in self._columns
        ]
        return list(zip(*columns, strict=True))

    def step(self, batch: Shares) -> list[NDArray]:
        """Queue forward and backward on every device, and the update."""
        self._statistics.advance(shapes_of(batch[0][: self._inputs]) if self._changing else None)
        with autograd.record():
            losses = [self.forward(*share)[0] for share in batch]
        for loss in losses:
            loss.backward()
        self.rule.step(1)
        self.latest = losses[-1]
        return losses

    def losses(self, handles: list[list[NDArray]]) -> Array:
        """Read the losses of whole batches back."""
        return np.array([np.mean([float(each.asscalar()) for each in shares]) for shares in handles], np.float32)

    def gradients(self, batch: Shares) -> tuple[dict[str, Array], float, dict[str, Array]]:
        """Forward in training mode and backward on every device; the store adds the gradients."""
        with autograd.record():
            found = [self.forward(*share) for share in batch]
        for loss, *_ in found:
            loss.backward()
        gradients: dict[str, Array] = {}
        store = mx.kv.create(self._store)
        for key, (name, parameter) in enumerate(self._trained.items()):
            copies = [each.tostype("default") for each in parameter.list_grad()]
            store.init(key, copies[0].zeros_like())
            store.pushpull(key, copies)
            gradients[name] = copies[0].asnumpy() / len(batch)
        loss = float(np.mean([float(each[0].asscalar()) for each in found]))
        return self._joined([outputs for _, *outputs in found]), loss, gradients

    def inner(self, batch: Shares, names: Collection[str]) -> dict[str, Array]:
        """Refuse: hooks of blocks see each device alone."""
        raise Refusal("unsupported", "Inner tensors are not collected from several devices.")

    def _joined(self, shares: list[list[NDArray]]) -> dict[str, Array]:
        found = [self._canonical(outputs) for outputs in shares]
        return {name: np.concatenate([each[name] for each in found]) for name in found[0]}

    def _inferred(self, batch: Shares) -> dict[str, Array]:
        return self._joined([self.forward(*share)[1:] for share in batch])

    def _averaged_statistics(self) -> dict[str, Array]:
        means = {name: _mean_of_copies(self._named[name]).asnumpy() for name in self._statistics_of_share}
        return means | self._statistics.canonical()

    def _running_statistics(self, *arguments: Any) -> RunningStatistics:
        # The canonical variances are linear in MXNet's own, so those of the average are the average of those of all devices.
        return RunningStatistics(*arguments, _mean_of_copies)


def _mean_of_copies(parameter: Parameter) -> NDArray:
    """Return the average over all devices, in a new array."""
    first, *others = parameter.list_data()
    total = first.copy()
    for each in others:
        total += each.as_in_context(total.context)
    return total / (len(others) + 1)


def devices(settings: Settings, parts: int) -> list[mx.Context]:
    """Return the devices over which a computation is spread; all CPU devices are the same processor."""
    return [mx.Context(context_of(settings).device_type, number) for number in range(parts)]


def applied(settings: Settings, store: str, parts: int) -> str:
    """Return the type of a store, and on how many devices MXNet puts a parameter, as the name of a strategy has them."""
    probe = Probe(settings.precision)
    probe.initialize(mx.init.One(), devices(settings, parts))
    return f"{mx.kv.create(store).type}:{len(probe.weight.list_ctx())}"


class Clipped:
    """Adds the gradients of all devices, clips the global norm of their average on each device, and updates there."""

    def __init__(self, trainer: gluon.Trainer, limit: float, parameters: list[Parameter], parts: int) -> None:
        # The sum is clipped, and the trainer divides it.
        self._trainer, self._limit, self._parameters = trainer, limit * parts, parameters

    def step(self, batch_size: int) -> None:
        """Add, clip and update."""
        self._trainer.allreduce_grads()
        for gradients in zip(*(parameter.list_grad() for parameter in self._parameters), strict=True):
            optimizers.clip(gradients, self._limit)
        self._trainer.update(batch_size)


class Copied:
    """A rule of one device on the averaged gradients of all; the others get the weights that it computes."""

    def __init__(self, rule: Any, store: str, parameters: list[Parameter], parts: int) -> None:
        self._rule, self._store, self._parameters, self._share = rule, mx.kv.create(store), parameters, 1 / parts
        for key, parameter in enumerate(parameters):
            self._store.init(key, parameter.grad().zeros_like())

    def step(self, batch_size: int) -> None:
        """Average, update and copy."""
        for key, parameter in enumerate(self._parameters):
            self._store.pushpull(key, parameter.list_grad(), priority=-key)
            gradient = parameter.grad()
            gradient *= self._share
        self._rule.step(batch_size)
        for parameter in self._parameters:
            first, *others = parameter.list_data()
            for each in others:
                first.copyto(each)


def _rule(spec: Optimizer, named: dict[str, Parameter], rates: Array | None, lazy: bool, store: str, parts: int) -> Any:
    """Return an object with `step(batch_size)` over parameters on several devices."""
    parameters = list(named.values())
    if spec.implementation == "reference":
        return Copied(optimizers.update_rule(spec, named, rates, lazy), store, parameters, parts)
    made = stores.rule_of_store(spec, named, rates, lazy)
    made.rescale_grad = 1 / parts
    if not spec.clip:
        return gluon.Trainer(parameters, made, kvstore=store)
    trainer = gluon.Trainer(parameters, made, kvstore=store, update_on_kvstore=False)
    return Clipped(trainer, spec.clip, parameters, parts)
