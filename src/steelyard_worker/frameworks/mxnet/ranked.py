"""One rank of several that train one network by MXNet's parameter servers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import mxnet as mx

from steelyard_worker.frameworks.mxnet import stores
from steelyard_worker.frameworks.mxnet.shares import AveragingTrainer
from steelyard_worker.frameworks.mxnet.trainer import Trainer
from steelyard_worker.protocol import Refusal

if TYPE_CHECKING:
    from collections.abc import Mapping

    from steelyard_worker.case import Optimizer
    from steelyard_worker.frameworks.base import Array
    from steelyard_worker.frameworks.mxnet.stores import Store


class SynchronousTrainer(AveragingTrainer):
    """A rank whose gradients are averaged with those of the others; every rank has the same weights after each step."""

    def __init__(self, store: Store, *arguments: Any) -> None:
        self._store = store
        super().__init__(*arguments)

    def _rule(self, optimizer: Optimizer, rates: Array | None, lazy: bool) -> Any:
        return stores.synchronous_rule(optimizer, self._trained, rates, lazy, self._store)

    def _averages(self, arrays: dict[str, Array]) -> dict[str, Array]:
        if not arrays:
            return {}
        placed = [mx.nd.array(array, self._context, array.dtype) for array in arrays.values()]
        stores.Average(self._store, placed)(placed)
        return {name: array.asnumpy() for name, array in zip(arrays, placed, strict=True)}


class AsynchronousTrainer(Trainer):
    """A rank whose gradients the servers apply when they arrive; a rank gets the weights as they are then."""

    def __init__(self, store: Store, *arguments: Any) -> None:
        self._store = store
        super().__init__(*arguments)

    def _rule(self, optimizer: Optimizer, rates: Array | None, lazy: bool) -> Any:
        return stores.asynchronous_rule(optimizer, self._trained, rates, lazy, self._store)

    def restart(self, weights: Mapping[str, Array]) -> None:
        """Refuse: there is no order of updates that could be repeated."""
        raise Refusal("unsupported", "Servers apply gradients in any order, so the first steps cannot be repeated.")
