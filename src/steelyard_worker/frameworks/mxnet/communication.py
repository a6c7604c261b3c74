"""The exchange of a synchronous store: every rank sends a buffer to the server, and gets the sum over all ranks back."""

from __future__ import annotations

from typing import TYPE_CHECKING

import mxnet as mx

if TYPE_CHECKING:
    from steelyard_worker.frameworks.base import Array
    from steelyard_worker.frameworks.mxnet.stores import Store


class StoreReduce:
    """`pushpull` of one key of the store."""

    name = "mxnet.kv.KVStore.pushpull (dist_sync)"
    mean = False

    def __init__(self, array: Array, store: Store) -> None:
        self._buffer = mx.nd.array(array)
        self._sum = self._buffer.zeros_like()
        self._keys = store.keys(1)
        self._keys.init(0, self._sum)

    def __call__(self) -> None:
        """Send and receive, and wait for what is received."""
        self._keys.pushpull(0, self._buffer, self._sum)
        self._sum.wait_to_read()

    def result(self) -> Array:
        """Copy the sum to the host."""
        found: Array = self._sum.asnumpy()
        return found
