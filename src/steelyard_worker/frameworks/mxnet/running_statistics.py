"""Canonical batch-norm statistics from MXNet's own, which are biased and use their momentum as float32."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import mxnet as mx
import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from mxnet.gluon import Parameter
    from mxnet.nd import NDArray

    from steelyard_worker.frameworks.base import Array
    from steelyard_worker.frameworks.mxnet.layers import BatchNorm

    Shapes = tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class _Run:
    """Consecutive steps on inputs of one shape, and MXNet's variances after them."""

    shapes: Shapes
    steps: int
    after: Mapping[str, Any]


class RunningStatistics:
    """Unbiased running variances at almost no cost in the training step (P-03).

    MXNet computes r <- m r + (1-m) b from the biased variance b of n values; the canonical recurrence has b n/(n-1) instead of
    b. Both are linear, so after t steps from the same r0 the canonical value is exactly
        r + (r - m^t r0) / (n-1).
    Only the step count is needed, when the statistics are read and before inference. Correcting the batch variance itself would
    cost one operator per layer and step. Where the shape of the inputs changes, and n with it, MXNet's values before the change
    are kept, and the correction is computed over each run of equal shapes.

    `batch_norms(shapes)` returns the batch norms at some shapes of the inputs; `shapes` are those of a full batch.
    `read` returns a new array with the value of a parameter.
    """

    def __init__(
        self,
        named: dict[str, Parameter],
        batch_norms: Callable[[Shapes], dict[str, BatchNorm]],
        shapes: Shapes,
        read: Callable[[Parameter], NDArray] = lambda parameter: parameter.data().copy(),
    ) -> None:
        self._read = read
        self._batch_norms, self._known = batch_norms, {shapes: batch_norms(shapes)}
        self._native = {f"{name}.running_var": named[f"{name}.running_var"] for name in self._known[shapes]}
        self._first_shapes = shapes
        self.restart()

    def restart(self) -> None:
        """Begin with the values that the parameters have now."""
        self._initial = {name: self._read(parameter).asnumpy() for name, parameter in self._native.items()}
        self._shapes, self._steps, self._runs = self._first_shapes, 0, list[_Run]()

    def advance(self, shapes: Shapes | None = None) -> None:
        """Count the training step that begins; `shapes` of its inputs, None where they never change."""
        if shapes is not None and shapes != self._shapes:
            self._end_run()
            self._shapes = shapes
        self._steps += 1

    def _end_run(self) -> None:
        if self._steps:
            after = {name: self._read(parameter) for name, parameter in self._native.items()}
            self._runs.append(_Run(self._shapes, self._steps, after))
            self._steps = 0

    def canonical(self) -> dict[str, Array]:
        """Return {name: unbiased running variance} in the precision of the run."""
        self._end_run()
        return {name: self._unbiased(name) for name in self._native}

    def _unbiased(self, name: str) -> Array:
        biased = self._initial[name].astype(np.float64)
        correction = np.zeros(biased.shape)
        for run in self._runs:
            layer = self._layer(name, run.shapes)
            after = run.after[name].asnumpy().astype(np.float64)
            # The operator stores the momentum as float32 in every precision.
            weight_of_initial = float(np.float32(layer.momentum)) ** run.steps
            added = after - weight_of_initial * biased
            correction = weight_of_initial * correction + added / (layer.count - 1)
            biased = after
        return np.asarray(biased + correction, self._initial[name].dtype)

    def _layer(self, name: str, shapes: Shapes) -> BatchNorm:
        if shapes not in self._known:
            self._known[shapes] = self._batch_norms(shapes)
        return self._known[shapes][name.removesuffix(".running_var")]

    @contextmanager
    def in_place(self) -> Iterator[None]:
        """Use the canonical values for inference, then restore MXNet's own bit by bit."""
        own = {name: parameter.data().copy() for name, parameter in self._native.items()}
        for name, array in self.canonical().items():
            self._native[name].set_data(mx.nd.array(array, dtype=array.dtype))
        yield
        for name, array in own.items():
            self._native[name].set_data(array)
