"""Parts of residual networks: convolutions, batch norms, stems, shortcuts, and the classifier around a body of blocks."""

from __future__ import annotations

from typing import TYPE_CHECKING

import tensorflow as tf

from steelyard_worker.frameworks.tensorflow.layers import BatchNorm, Convolution, Dense
from steelyard_worker.frameworks.tensorflow.pooling import MaxPool
from steelyard_worker.probes import probe

if TYPE_CHECKING:
    from collections.abc import Callable

    from steelyard_worker.frameworks.tensorflow.layers import Variables

    Block = Callable[[tf.Tensor, bool], tf.Tensor]


class ConvNorm:
    """Bias-free convolution padded by half its kernel, then batch norm, with the given names."""

    def __init__(
        self, variables: Variables, conv: str, norm: str, channels: int, out: int, kernel: int, stride: int = 1
    ) -> None:
        self._conv = Convolution(variables, conv, channels, out, kernel, stride, kernel // 2)
        self._norm = BatchNorm(variables, norm, out, epsilon=1e-5, momentum=0.1)

    def __call__(self, x: tf.Tensor, training: bool) -> tf.Tensor:
        return self._norm(self._conv(x), training)


class Stem:
    """The stem named `seed`, `cifar` or `imagenet`."""

    def __init__(self, variables: Variables, channels: int, width: int, kind: str) -> None:
        large = kind == "imagenet"
        kernel, stride = (7, 2) if large else (3, 1)
        self._first = ConvNorm(variables, "stem.conv", "stem.bn", channels, width, kernel, stride)
        window = {"seed": (2, 2, 0), "cifar": None, "imagenet": (3, 2, 1)}[kind]
        self._pool = MaxPool(variables, *window) if window else None

    def __call__(self, x: tf.Tensor, training: bool) -> tf.Tensor:
        x = tf.nn.relu(self._first(x, training))
        return probe("stem", self._pool(x) if self._pool else x)


class Shortcut:
    """The shortcut of a block: the identity, or a projection where its shape changes."""

    def __init__(self, variables: Variables, name: str, channels: int, out: int, stride: int) -> None:
        projected = stride != 1 or channels != out
        names = f"{name}.shortcut.conv", f"{name}.shortcut.bn"
        self._projection = ConvNorm(variables, *names, channels, out, 1, stride) if projected else None

    def __call__(self, x: tf.Tensor, training: bool) -> tf.Tensor:
        return self._projection(x, training) if self._projection else x


class Classifier:
    """Stem, blocks, global mean, dense layer: images (N, H, W, C) -> logits (N, classes).

    `frozen`: batch norms of the body always normalise by their running statistics.
    """

    def __init__(self, first: Stem, blocks: list[Block], head: Dense, frozen: bool = False) -> None:
        self._body, self._head, self._frozen = (first, *blocks), head, frozen

    def __call__(self, image: tf.Tensor, training: bool) -> dict[str, tf.Tensor]:
        x = image
        for part in self._body:
            x = part(x, training and not self._frozen)
        return {"logits": self._head(tf.reduce_mean(x, (1, 2)))}
