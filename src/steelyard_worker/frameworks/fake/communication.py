"""The all-reduce of the scripted strategy."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from steelyard_worker.frameworks.base import Array
    from steelyard_worker.frameworks.fake.adapter import Adapter


class CopiesReduce:
    """The mean over the ranks, by way of the first one; it takes a tenth of a step."""

    name = "Exchange.mean"
    mean = True

    def __init__(self, array: Array, adapter: Adapter) -> None:
        self._buffer, self._adapter = array, adapter

    def __call__(self) -> None:
        """Exchange the buffer."""
        assert self._adapter.exchange is not None
        self._mean = self._adapter.exchange.mean({"buffer": self._buffer})["buffer"]
        self._adapter.pass_step(0.1)

    def result(self) -> Array:
        """Return the mean; if the script says so, the rank's own contribution."""
        return self._buffer if self._adapter.knobs["fault"] == "reduce" else self._mean
