"""The all-reduce of MindSpore's cluster, by which `DistributedGradReducer` averages gradients."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mindspore import Tensor, nn, ops

from steelyard_worker.frameworks.mindspore.predictor import to_numpy

if TYPE_CHECKING:
    from steelyard_worker.frameworks.base import Array


class _Reduce(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.reduce = ops.AllReduce(ops.ReduceOp.SUM)

    def construct(self, buffer: Tensor) -> Tensor:
        return self.reduce(buffer)


class ClusterReduce:
    """The sum of a buffer over all ranks."""

    name = "mindspore.ops.AllReduce"
    mean = False

    def __init__(self, array: Array) -> None:
        self._buffer, self._cell = Tensor(array), _Reduce()

    def __call__(self) -> None:
        """Reduce, and wait until the result can be read."""
        self._result = self._cell(self._buffer)
        self._result.asnumpy()

    def result(self) -> Array:
        """Copy the result to the host."""
        return to_numpy(self._result)
