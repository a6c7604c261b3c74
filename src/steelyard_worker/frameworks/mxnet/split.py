"""One network cut into parts, each on a device of its own: MXNet's model parallelism, by executors of symbols."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import mxnet as mx
from mxnet import nd

from steelyard_worker.frameworks.mxnet import cut, layers, optimizers, stores
from steelyard_worker.frameworks.mxnet.devices import devices
from steelyard_worker.frameworks.mxnet.predictor import shapes_of
from steelyard_worker.frameworks.mxnet.trainer import Objective, Trainer
from steelyard_worker.protocol import Refusal

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from types import ModuleType

    from mxnet.executor import Executor
    from mxnet.gluon import Parameter
    from mxnet.nd import NDArray

    from steelyard_worker.batches import Batch
    from steelyard_worker.case import Optimizer, Settings
    from steelyard_worker.frameworks.base import Array
    from steelyard_worker.network import Network

    Bound = tuple[Executor, list[NDArray]]


class SplitTrainer(Trainer):
    """A network whose parts are on different devices. There is an executor for every shape of a batch, as with bucketing."""

    def __init__(
        self,
        parts: int,
        settings: Settings,
        implementation: ModuleType,
        sizes: dict[str, Any],
        network: Network,
        weights: Mapping[str, Array],
        optimizer: Optimizer,
        rates: Array | None = None,
    ) -> None:
        self._devices, self._implementation = devices(settings, parts), implementation
        self._executors: dict[Any, Bound] = {}
        super().__init__(settings, implementation, sizes, network, weights, optimizer, rates)
        if self._changing and hasattr(self._network, "fit"):
            raise Refusal("unsupported", "MXNet unrolls a loop of this network, and its parts are cut only once.")

    @property
    def graphs(self) -> int:
        """Number of executors made so far."""
        return len(self._executors)

    def _load(self, network: Network, weights: Mapping[str, Array]) -> None:
        implementation, trained = self._implementation, {each.name for each in network.parameters if each.trainable}
        loss = implementation.loss()
        loss.cast(self._dtype.name)
        columns = (*implementation.INPUTS, *implementation.TARGETS)
        named = {name: mx.sym.var(name) for name in columns}  # a column may be both an input and a target
        found = Objective(self._network, loss, len(implementation.INPUTS))(*(named[name] for name in columns))
        names = frozenset(self._named[name].name for name in trained)
        self._symbol, self._part = cut.cut(mx.sym.Group(list(found)), frozenset(columns), names, len(self._devices))
        layers.load(self._named, network, weights, lambda parameter: self._device_of(parameter.name))
        self._parameters: dict[str, Parameter] = dict(self._network.collect_params().items())
        for parameter in set(self._parameters.values()) - set(self._named.values()):
            parameter.initialize(mx.init.Zero(), self._device_of(parameter.name))

    def _device_of(self, name: str) -> mx.Context:
        return self._devices[self._part.get(name, 0)]

    def _rule(self, optimizer: Optimizer, rates: Array | None, lazy: bool) -> Any:
        parameters = list(self._trained.values())
        if optimizer.implementation == "reference":
            rule: Any = optimizers.Reference(optimizer, self._trained, rates)
        else:
            rule = Updates(stores.rule_of_store(optimizer, self._trained, rates, lazy), parameters)
        return Clipped(rule, optimizer.clip, parameters) if optimizer.clip else rule

    def put(self, batch: Batch) -> tuple[NDArray, ...]:
        """Copy a canonical batch to the devices, each column to the part that last uses it."""
        return tuple(self._typed(batch[name], self._device_of(name)) for name in self._columns)

    def step(self, batch: tuple[NDArray, ...]) -> NDArray:
        """Queue forward, backward and update; batch-norm statistics change in backward (P-04)."""
        self._statistics.advance(shapes_of(batch[: self._inputs]) if self._changing else None)
        # A copy, because the next step writes into the executor's own array.
        loss = self._backward(batch)[0].copy()
        self.rule.step(1)
        self.latest = loss
        return loss

    def _backward(self, batch: tuple[NDArray, ...]) -> list[NDArray]:
        executor, heads = self._bound(batch)
        outputs: list[NDArray] = executor.forward(is_train=True, **dict(zip(self._columns, batch, strict=True)))
        executor.backward(heads)
        return outputs

    def gradients(self, batch: tuple[NDArray, ...]) -> tuple[dict[str, Array], float, dict[str, Array]]:
        """Forward in training mode and backward."""
        loss, *outputs = self._backward(batch)
        gradients = {name: parameter.grad().asnumpy() for name, parameter in self._trained.items()}
        return self._canonical(outputs), float(loss.asscalar()), gradients

    def outputs(self, batch: tuple[NDArray, ...]) -> dict[str, Array]:
        """Forward in inference mode, with the canonical running statistics instead of MXNet's own."""
        executor, _ = self._bound(batch)
        with self._statistics.in_place():
            found = executor.forward(is_train=False, **dict(zip(self._columns, batch, strict=True)))
            return self._canonical(found[1:])

    def inner(self, batch: tuple[NDArray, ...], names: Collection[str]) -> dict[str, Array]:
        """Refuse: executors have no hooks of blocks."""
        raise Refusal("unsupported", "Inner tensors are not collected from a network that is cut.")

    def _bound(self, batch: tuple[NDArray, ...]) -> Bound:
        """Return the executor for batches of this shape, and what `backward` starts from: the loss alone."""
        shapes = shapes_of(batch)
        if shapes not in self._executors:
            self._executors[shapes] = self._bind(batch)
        return self._executors[shapes]

    def _bind(self, batch: tuple[NDArray, ...], request: str = "write", share: float = 1.0) -> Bound:
        """`request`: whether gradients are written or added. `share`: what the gradient of this loss counts."""
        columns = {name: array.copy() for name, array in zip(self._columns, batch, strict=True)}
        values = columns | {name: parameter.data() for name, parameter in self._parameters.items()}
        gradients = {each.name: each.grad() for each in self._trained.values()}
        executor = self._symbol.bind(
            self._devices[0],
            {name: values[name] for name in self._symbol.list_arguments()},
            gradients,
            {name: request if name in gradients else "null" for name in self._symbol.list_arguments()},
            {name: values[name] for name in self._symbol.list_auxiliary_states()},
            {cut.group_of(part): device for part, device in enumerate(self._devices)},
        )
        first, *others = executor.outputs
        return executor, [
            nd.full(first.shape, share, first.context, first.dtype),
            *(nd.zeros_like(each) for each in others),
        ]


class Updates:
    """One of MXNet's optimizers over parameters that are on different devices, as its modules apply it."""

    def __init__(self, made: mx.optimizer.Optimizer, parameters: list[Parameter]) -> None:
        made.param_dict = dict(enumerate(parameters))
        found: dict[mx.Context, list[tuple[int, NDArray, NDArray]]] = {}
        for index, each in enumerate(parameters):
            found.setdefault(each.data().context, []).append((index, each.grad(), each.data()))
        self._updates = [
            (mx.optimizer.get_updater(made), *(list(column) for column in zip(*rows, strict=True)))
            for rows in found.values()
        ]

    def step(self, batch_size: int) -> None:
        """Update; gradients are those of a mean loss."""
        del batch_size
        for updater, indices, gradients, values in self._updates:
            updater(indices, gradients, values)


class Clipped:
    """Clips the global norm of all gradients, wherever they are, then applies a rule."""

    def __init__(self, rule: Any, limit: float, parameters: list[Parameter]) -> None:
        self._rule, self._limit = rule, limit
        self._parts: dict[mx.Context, list[NDArray]] = {}
        for each in parameters:
            self._parts.setdefault(each.grad().context, []).append(each.grad())

    def step(self, batch_size: int) -> None:
        """Clip, then update."""
        first = next(iter(self._parts))
        squares = [optimizers.squares(gradients).as_in_context(first) for gradients in self._parts.values()]
        scale = optimizers.scale_for(nd.add_n(*squares), self._limit)
        for device, gradients in self._parts.items():
            optimizers.multiply(gradients, scale.as_in_context(device))
        self._rule.step(batch_size)


def applied(settings: Settings, parts: int) -> str:
    """Return on how many devices MXNet puts the weights of a small network that is cut, as the end of a strategy's name."""
    symbol = mx.sym.var("x")
    for part in range(parts):
        symbol = mx.sym.FullyConnected(symbol, num_hidden=1, no_bias=True, name=str(part))
    placed, _ = cut.cut(symbol, frozenset("x"), frozenset(f"{part}_weight" for part in range(parts)), parts)
    found = devices(settings, parts)
    groups = {cut.group_of(part): device for part, device in enumerate(found)}
    executor = placed.simple_bind(found[0], group2ctx=groups, x=(1, 1))
    return str(len({array.context for name, array in executor.arg_dict.items() if name != "x"}))
