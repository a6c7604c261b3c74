"""MXNet's key-value stores that several ranks share: averages over the ranks, and updates on the servers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import mxnet as mx
from mxnet import gluon
from mxnet.kvstore import KVStore

from steelyard_worker.frameworks.mxnet import optimizers, served
from steelyard_worker.protocol import Refusal

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from mxnet.gluon import Parameter
    from mxnet.nd import NDArray

    from steelyard_worker.case import Optimizer
    from steelyard_worker.frameworks.base import Array


class Keys(KVStore):
    """Some keys of a store, counted from 0: a store initialises a key only once, and a process may build several trainers."""

    def __init__(self, store: KVStore, first: int) -> None:
        super().__init__(store.handle)
        self._store, self.first = store, first

    def __del__(self) -> None:
        """Leave the store to those who still use it."""

    def init(self, key: int, value: NDArray) -> None:
        """Store a first value, that of the first rank."""
        self._store.init(self.first + key, value)

    def broadcast(self, key: int, value: NDArray, out: Any, priority: int = 0) -> None:
        """Store the value of the first rank and give it to all."""
        self._store.broadcast(self.first + key, value, out, priority)

    def push(self, key: int, value: Any, priority: int = 0) -> None:
        """Send a value to the servers."""
        self._store.push(self.first + key, value, priority)

    def pull(self, key: int, out: Any = None, priority: int = 0, ignore_sparse: bool = True) -> None:
        """Get a value from the servers."""
        self._store.pull(self.first + key, out, priority, ignore_sparse)

    def pushpull(self, key: int, value: Any, out: Any = None, priority: int = 0) -> None:
        """Send a value to the servers, and get what they make of it."""
        self._store.pushpull(self.first + key, value, out, priority)


class Store:
    """The store of all ranks in this process, and which of its keys are used."""

    def __init__(self, store: KVStore) -> None:
        self._store, self._used = store, 0

    @property
    def ranks(self) -> int:
        """The ranks that MXNet knows."""
        return int(self._store.num_workers)

    def keys(self, count: int) -> Keys:
        """Return new keys. Servers store the sum over the ranks of what they get, except for keys that they have a rule for."""
        first, self._used = self._used, self._used + count
        return Keys(self._store, first)


class Average:
    """Replaces tensors of the same shapes as `like` by their averages over the ranks, which the servers compute."""

    def __init__(self, store: Store, like: Sequence[NDArray]) -> None:
        self._keys, self._share = store.keys(len(like)), 1 / store.ranks
        for key, array in enumerate(like):
            self._keys.init(key, array.zeros_like())

    def __call__(self, arrays: Sequence[NDArray]) -> None:
        """Average in place; the first tensors first, as the next forward pass needs them first."""
        for key, array in enumerate(arrays):
            self._keys.pushpull(key, array, array, -key)
        for array in arrays:
            array *= self._share


class Averaged:
    """A rule of a single process on gradients that are averaged over the ranks before: what needs all of them at once."""

    def __init__(self, rule: Any, average: Average, parameters: Sequence[Parameter]) -> None:
        self._rule, self._average, self._parameters = rule, average, parameters

    def step(self, batch_size: int) -> None:
        """Average, then update."""
        self._average([parameter.grad() for parameter in self._parameters])
        self._rule.step(batch_size)


def synchronous_rule(
    spec: Optimizer, named: dict[str, Parameter], rates: Array | None, lazy: bool, store: Store
) -> Any:
    """Return an object with `step(batch_size)`: the servers add the gradients of all ranks and update the weights.

    Clipping needs the norm of all gradients and servers have one tensor at a time, so there the ranks update averaged gradients.
    """
    parameters = list(named.values())
    if not spec.clip and spec.implementation != "reference":
        return _updated_by_servers(spec, named, rates, lazy, store, 1 / store.ranks)
    average = Average(store, [parameter.grad() for parameter in parameters])
    return Averaged(optimizers.update_rule(spec, named, rates, lazy), average, parameters)


def _updated_by_servers(
    spec: Optimizer,
    named: dict[str, Parameter],
    rates: Array | None,
    lazy: bool,
    store: Store,
    share: float,
    served_as: Callable[[mx.optimizer.Optimizer], mx.optimizer.Optimizer] | None = None,
) -> gluon.Trainer:
    if any(parameter.grad().stype != "default" for parameter in named.values()):
        raise Refusal(
            "unsupported",
            "MXNet's server ended with an error (copying size mismatch) when ranks sent it row-sparse gradients.",
        )
    keys = store.keys(len(named))
    made = rule_of_store(spec, named, rates, lazy, keys.first)
    made.rescale_grad = share
    # MXNet does not send `Parameter.wd_mult` and `Parameter.lr_mult`, so servers decayed every tensor, all at one rate.
    numbered = dict(enumerate(named.values(), keys.first))
    made.wd_mult = {key: parameter.wd_mult for key, parameter in numbered.items()}
    made.lr_mult = {key: parameter.lr_mult for key, parameter in numbered.items()}
    made = served_as(made) if served_as else served.Updates(made, range(keys.first, keys.first + len(named)))
    return gluon.Trainer(list(named.values()), made, kvstore=keys, update_on_kvstore=True)


def asynchronous_rule(
    spec: Optimizer,
    named: dict[str, Parameter],
    rates: Array | None,
    lazy: bool,
    store: Store,
    served_as: Callable[[mx.optimizer.Optimizer], mx.optimizer.Optimizer] | None = None,
) -> Any:
    """Return an object with `step(batch_size)`: the servers apply every gradient alone, after its own rank has clipped it.

    `served_as`: what the servers get in place of the rule.
    """
    if spec.implementation == "reference":
        raise Refusal("unsupported", "Servers of dist_async update the weights by MXNet's own optimizers only.")
    rule = _updated_by_servers(spec, named, rates, lazy, store, 1.0, served_as)
    return optimizers.Clipped(rule, spec.clip, list(named.values())) if spec.clip else rule


def rule_of_store(
    spec: Optimizer, named: dict[str, Parameter], rates: Array | None, lazy: bool, first: int = 0
) -> mx.optimizer.Optimizer:
    """Return MXNet's own optimizer for a store whose first key is given."""
    made = optimizers.native(spec, named, rates, lazy)
    if spec.name != "adamw":
        return made
    decays = {first + key: spec.rate_of(name) * spec.decay_of(name) for key, name in enumerate(named)}
    rate = spec.learning_rate if rates is None else served.Rates(rates, 1.0)
    return served.DecayedAdam(decays, rate, **optimizers.adam_constants(spec, rates, lazy))
