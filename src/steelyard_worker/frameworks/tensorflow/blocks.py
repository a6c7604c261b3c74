"""Blocks of convolutional networks: convolution, batch norm, ReLU, and branches of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import tensorflow as tf

from steelyard_worker.frameworks.tensorflow.layers import BatchNorm, Convolution, Variables
from steelyard_worker.probes import probe

if TYPE_CHECKING:
    from collections.abc import Callable

    from steelyard_worker.frameworks.tensorflow.convolution import Pair


class ConvBlock:
    """Convolution without bias -> batch norm -> ReLU: (N, H, W, channels) -> (N, H', W', out); arguments as of `Convolution`."""

    def __init__(
        self,
        variables: Variables,
        name: str,
        channels: int,
        out: int,
        kernel: int | Pair = 1,
        stride: int | Pair = 1,
        padding: int | Pair = 0,
        *,
        epsilon: float,
    ) -> None:
        self._conv = Convolution(variables, f"{name}.conv", channels, out, kernel, stride, padding)
        self._bn = BatchNorm(variables, f"{name}.bn", out, epsilon, momentum=0.1)
        self._name = name

    def __call__(self, x: tf.Tensor, training: bool) -> tf.Tensor:
        return probe(self._name, tf.nn.relu(self._bn(self._conv(x), training)))


class Branch:
    """Blocks in sequence, named step1 and so on, after a pool if one is given; a step is (out, kernel, stride, padding)."""

    def __init__(
        self,
        variables: Variables,
        name: str,
        channels: int,
        *steps: tuple[Any, ...],
        epsilon: float,
        pool: Callable[[tf.Tensor], tf.Tensor] | None = None,
    ) -> None:
        self._pool, self._steps = pool, []
        for number, step in enumerate(steps, 1):
            self._steps.append(ConvBlock(variables, f"{name}.step{number}", channels, *step, epsilon=epsilon))
            channels = step[0]

    def __call__(self, x: tf.Tensor, training: bool) -> tf.Tensor:
        x = self._pool(x) if self._pool else x
        for step in self._steps:
            x = step(x, training)
        return x
