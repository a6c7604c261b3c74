"""How stale the gradients of an asynchronous store are: one more key, which counts the updates of all ranks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import mxnet as mx
import numpy as np

from steelyard_worker.frameworks.mxnet import served, stores
from steelyard_worker.frameworks.mxnet.ranked import AsynchronousTrainer

if TYPE_CHECKING:
    from mxnet.nd import NDArray

    from steelyard_worker.case import Optimizer
    from steelyard_worker.frameworks.base import Array


class CountingTrainer(AsynchronousTrainer):
    """A rank that adds 1 to the count with every update, and gets the count back as it gets the weights.

    The count is exchanged like the tensor whose gradient is the last of a backward pass: sent when that gradient is there.
    """

    def _rule(self, optimizer: Optimizer, rates: Array | None, lazy: bool) -> Any:
        self._keys, self._count = self._store.keys(1), mx.nd.zeros((1,))
        self._keys.init(0, self._count)
        self._counts: list[int] = []
        return stores.asynchronous_rule(
            optimizer, self._trained, rates, lazy, self._store, lambda rule: served.Counting(rule, self._keys.first)
        )

    def step(self, batch: tuple[NDArray, ...]) -> NDArray:
        """Queue a step and the exchange of the count."""
        loss = super().step(batch)
        last = next(iter(self._trained.values())).grad()
        some = last.reshape((-1,))[:1]
        one = (some == some) + (some != some)  # the engine computes it when the gradient is there, and it may be NaN
        self._keys.pushpull(0, one, self._count)
        self._counts.append(int(self._count.asscalar()))  # waited for: exchanges of two steps sometimes pass each other
        return loss

    def staleness(self) -> Array:
        """Return how many updates of others there were between two of this rank's own, int64, for all since the last call."""
        found = np.diff(np.array(self._counts, np.int64)) - 1
        self._counts.clear()
        return found
