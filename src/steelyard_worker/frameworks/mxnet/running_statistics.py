"""Canonical batch-norm statistics from MXNet's own, which are biased and use their momentum as float32."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

import mxnet as mx
import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mxnet.gluon import Parameter

    from steelyard_worker.frameworks.base import Array
    from steelyard_worker.frameworks.mxnet.layers import BatchNorm


class RunningStatistics:
    """Unbiased running variances at no cost in the training step (P-03).

    MXNet computes r <- m r + (1-m) b from the biased variance b of n values; the canonical recurrence has b n/(n-1) instead of
    b. Both are linear, so after t steps from the same r0 the canonical value is exactly
        r + (r - m^t r0) / (n-1).
    Only the step count is needed, when the statistics are read and before inference. Correcting the batch variance itself would
    cost one operator per layer and step.
    """

    def __init__(self, named: dict[str, Parameter], batch_norms: dict[str, BatchNorm]) -> None:
        self._layers = {f"{name}.running_var": layer for name, layer in batch_norms.items()}
        self._native = {name: named[name] for name in self._layers}
        self._initial = {name: parameter.data().asnumpy() for name, parameter in self._native.items()}
        self._steps = 0

    def advance(self) -> None:
        """Count one training step."""
        self._steps += 1

    def canonical(self) -> dict[str, Array]:
        """Return {name: unbiased running variance} in the precision of the run."""
        return {name: self._unbiased(name, parameter.data().asnumpy()) for name, parameter in self._native.items()}

    def _unbiased(self, name: str, biased: Array) -> Array:
        layer, wide = self._layers[name], biased.astype(np.float64)
        # The operator stores the momentum as float32 in every precision.
        weight_of_initial = float(np.float32(layer.momentum)) ** self._steps
        unbiased = wide + (wide - weight_of_initial * self._initial[name]) / (layer.count - 1)
        return np.asarray(unbiased, biased.dtype)

    @contextmanager
    def in_place(self) -> Iterator[None]:
        """Use the canonical values for inference, then restore MXNet's own bit by bit."""
        own = {name: parameter.data().copy() for name, parameter in self._native.items()}
        for name, array in self.canonical().items():
            self._native[name].set_data(mx.nd.array(array, dtype=array.dtype))
        yield
        for name, array in own.items():
            self._native[name].set_data(array)
