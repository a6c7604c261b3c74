"""Layers on plain `tf.Variable`s, created under their canonical names; images are NHWC, sequences time-major."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import tensorflow as tf

from steelyard_worker.frameworks.tensorflow.convolution import convolve, pair
from steelyard_worker.frameworks.tensorflow.recomputation import Recomputed, is_second_pass
from steelyard_worker.frameworks.tensorflow.recurrence import Recurrence
from steelyard_worker.frameworks.tensorflow.shapes import extent

if TYPE_CHECKING:
    from collections.abc import Callable

    from steelyard_worker.frameworks.tensorflow.convolution import Pair


@dataclass(frozen=True)
class Variables:
    """Variables by canonical name in the precision of the run, and how layers are computed.

    convolution: "library", "matmul", or "xla" (the library's unless XLA would be slow). fuse: use fused operators where they
    exist. recurrence: how loops over time run. lstm: "loop", one of those loops, or a Keras layer, "cell" or "fused".
    dropout: whether the network has it. recomputation: whether the backward pass computes blocks again.
    """

    dtype: tf.DType
    convolution: str = "library"
    fuse: bool = True
    recurrence: Recurrence = field(default_factory=Recurrence)
    lstm: str = "loop"
    dropout: bool = False
    recomputation: bool = False
    named: dict[str, tf.Variable] = field(default_factory=dict)

    def new(self, name: str, *shape: int) -> tf.Variable:
        """Create a variable with uninitialised memory; the weights are loaded later."""
        empty = tf.raw_ops.Empty(shape=shape, dtype=self.dtype, init=False)
        self.named[name] = tf.Variable(empty, name=name.replace(".", "_"))
        return self.named[name]

    def block(self, part: Callable[..., Any]) -> Callable[..., Any]:
        """Return a block of the network as it is called: its tensors are kept for the backward pass, or computed again."""
        return Recomputed(part) if self.recomputation else part


class Convolution:
    """Convolution with symmetric zero padding, without a bias by default: (N, H, W, channels) -> (N, H', W', out).

    Kernel, stride and padding are one number or (rows, columns).
    """

    def __init__(
        self,
        variables: Variables,
        name: str,
        channels: int,
        out: int,
        kernel: int | Pair,
        stride: int | Pair,
        padding: int | Pair,
        *,
        bias: bool = False,
    ) -> None:
        self._weight = variables.new(f"{name}.weight", *pair(kernel), channels, out)
        self._bias = variables.new(f"{name}.bias", out) if bias else None
        self._stride, self._padding, self._formulation = stride, padding, variables.convolution

    def __call__(self, x: tf.Tensor) -> tf.Tensor:
        y = convolve(self._formulation, x, self._weight, self._stride, self._padding)
        return y if self._bias is None else tf.nn.bias_add(y, self._bias)


class BatchNorm:
    """Batch norm over all axes but the last; `momentum` is the weight of the new statistic, the running variance is unbiased.

    The fused operator updates the running statistics itself and returns the unbiased variance (P-03). It has no float64 kernel.
    XLA would expand it into sums that are less exact than the composed ones and not faster.
    """

    def __init__(self, variables: Variables, name: str, channels: int, epsilon: float, momentum: float) -> None:
        self._gamma = variables.new(f"{name}.gamma", channels)
        self._beta = variables.new(f"{name}.beta", channels)
        self._mean = variables.new(f"{name}.running_mean", channels)
        self._variance = variables.new(f"{name}.running_var", channels)
        self._epsilon, self._momentum = epsilon, momentum
        self._statistics = self._fused if variables.fuse and variables.dtype == tf.float32 else self._composed

    def __call__(self, x: tf.Tensor, training: bool) -> tf.Tensor:
        if not training:
            # The fused operator is no faster in a graph, and TensorFlow's optimizer would merge it with a convolution and a tanh
            # into an operator that has no kernel on CPU.
            return tf.nn.batch_normalization(x, self._mean, self._variance, self._beta, self._gamma, self._epsilon)
        y, mean, variance = self._statistics(x)
        if is_second_pass():
            return y
        self._mean.assign(mean)
        self._variance.assign(variance)
        return y

    def _fused(self, x: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
        # The raw operator, because tf.compat.v1.nn.fused_batch_norm changes an epsilon of 1e-5 to 1.001e-5.
        found = tf.raw_ops.FusedBatchNormV3(
            x=x,
            scale=self._gamma,
            offset=self._beta,
            mean=self._mean,
            variance=self._variance,
            epsilon=self._epsilon,
            exponential_avg_factor=self._momentum,
            is_training=True,
        )
        return found.y, found.batch_mean, found.batch_variance

    def _composed(self, x: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
        mean, variance = tf.nn.moments(x, (0, 1, 2))
        y = tf.nn.batch_normalization(x, mean, variance, self._beta, self._gamma, self._epsilon)
        n = math.prod(extent(x, axis) for axis in range(3))
        n = tf.cast(n, x.dtype) if isinstance(n, tf.Tensor) else n
        new, old = self._momentum, 1 - self._momentum
        return y, old * self._mean + new * mean, old * self._variance + (new * n / (n - 1)) * variance


class Dense:
    """(N, features) -> (N, out)."""

    def __init__(self, variables: Variables, name: str, features: int, out: int) -> None:
        self._weight = variables.new(f"{name}.weight", features, out)
        self._bias = variables.new(f"{name}.bias", out)

    def __call__(self, x: tf.Tensor) -> tf.Tensor:
        return tf.matmul(x, self._weight) + self._bias


class Dropout:
    """Inverted dropout in training, where the network has it: units become zero with the probability `rate`, the others grow."""

    def __init__(self, variables: Variables, rate: float) -> None:
        self._rate, self._on = rate, variables.dropout

    def __call__(self, x: tf.Tensor, training: bool) -> tf.Tensor:
        return tf.nn.dropout(x, self._rate) if self._on and training else x
