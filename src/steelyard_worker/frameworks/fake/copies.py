"""The exchange of the scripted strategy: the first rank adds up what the others send, and returns the mean."""

from __future__ import annotations

import time
from multiprocessing.connection import Client, Listener
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from steelyard_worker.frameworks.base import Array
    from steelyard_worker.ranks import Ranks

RETRY_S, LONGEST_S = 0.02, 60.0


class Exchange:
    """All ranks, connected."""

    def __init__(self, ranks: Ranks) -> None:
        self._count = ranks.count
        address = (ranks.host, ranks.ports[1])
        if ranks.leads:
            with Listener(address, authkey=ranks.key) as listener:
                self._others = [listener.accept() for _ in range(ranks.count - 1)]
        else:
            self._others = [_connected(address, ranks.key)]
        self._leads = ranks.leads

    @property
    def count(self) -> int:
        """The ranks that are connected."""
        return len(self._others) + 1 if self._leads else self._count

    def mean(self, arrays: dict[str, Array]) -> dict[str, Array]:
        """Return the mean of what all ranks pass."""
        if not self._leads:
            self._others[0].send(arrays)
            found: dict[str, Array] = self._others[0].recv()
            return found
        parts = [arrays, *(other.recv() for other in self._others)]
        mean = {
            name: np.mean([part[name] for part in parts], axis=0, dtype=array.dtype) for name, array in arrays.items()
        }
        for other in self._others:
            other.send(mean)
        return mean


def _connected(address: Any, key: bytes) -> Any:
    deadline = time.monotonic() + LONGEST_S
    while True:
        try:
            return Client(address, authkey=key)
        except ConnectionError:
            if time.monotonic() > deadline:
                raise
            time.sleep(RETRY_S)
