"""Inception v3 in TensorFlow: functions over variables with the canonical names; images are NHWC."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import tensorflow as tf

from steelyard_worker.frameworks.tensorflow.blocks import Branch, ConvBlock
from steelyard_worker.frameworks.tensorflow.layers import Dense, Dropout, Variables
from steelyard_worker.frameworks.tensorflow.pooling import AveragePool, MaxPool

if TYPE_CHECKING:
    from collections.abc import Callable

EPSILON = 1e-3
WIDE, TALL = ((1, 7), 1, (0, 3)), ((7, 1), 1, (3, 0))


class Pool:
    """A branch that consists of a pool only."""

    def __init__(self, pool: Callable[[tf.Tensor], tf.Tensor]) -> None:
        self._pool = pool

    def __call__(self, x: tf.Tensor, training: bool) -> tf.Tensor:
        return self._pool(x)


class Parallel:
    """Branches concatenated along the channels, after shared `steps`."""

    def __init__(self, *branches: Any, steps: Branch | None = None) -> None:
        self._branches, self._steps = branches, steps

    def __call__(self, x: tf.Tensor, training: bool) -> tf.Tensor:
        x = self._steps(x, training) if self._steps else x
        return tf.concat([branch(x, training) for branch in self._branches], axis=3)


class Blocks:
    """Creates the parts of the network; output channels are given for width 32."""

    def __init__(self, variables: Variables, width: int) -> None:
        self._variables, self._width = variables, width

    def __call__(self, count: int) -> int:
        return count * self._width // 32

    def block(self, name: str, channels: int, out: int, *how: Any) -> ConvBlock:
        return ConvBlock(self._variables, name, channels, self(out), *how, epsilon=EPSILON)

    def branch(self, name: str, channels: int, *steps: tuple[Any, ...], pool: Any = None) -> Branch:
        scaled = [(self(out), *how) for out, *how in steps]
        return Branch(self._variables, name, channels, *scaled, epsilon=EPSILON, pool=pool)

    def pooled(self, name: str, channels: int, out: int) -> Branch:
        return self.branch(name, channels, (out,), pool=AveragePool(self._variables, 3, 1, 1))

    def split(self, name: str, channels: int, *steps: tuple[Any, ...]) -> Parallel:
        """A branch that ends in a 1x3 and a 3x1 block in parallel."""
        shared = self.branch(name, channels, *steps)
        wide = self.block(f"{name}.wide", self(384), 384, (1, 3), 1, (0, 1))
        return Parallel(wide, self.block(f"{name}.tall", self(384), 384, (3, 1), 1, (1, 0)), steps=shared)

    def a(self, name: str, channels: int, pool: int) -> Parallel:
        return Parallel(
            self.branch(f"{name}.branch1", channels, (64,)),
            self.branch(f"{name}.branch2", channels, (48,), (64, 5, 1, 2)),
            self.branch(f"{name}.branch3", channels, (64,), (96, 3, 1, 1), (96, 3, 1, 1)),
            self.pooled(f"{name}.branch4", channels, pool),
        )

    def b(self, name: str, channels: int) -> Parallel:
        return Parallel(
            self.branch(f"{name}.branch1", channels, (384, 3, 2)),
            self.branch(f"{name}.branch2", channels, (64,), (96, 3, 1, 1), (96, 3, 2)),
            Pool(MaxPool(self._variables, 3, 2)),
        )

    def c(self, name: str, channels: int, inner: int) -> Parallel:
        wide, tall = (inner, *WIDE), (inner, *TALL)
        return Parallel(
            self.branch(f"{name}.branch1", channels, (192,)),
            self.branch(f"{name}.branch2", channels, (inner,), wide, (192, *TALL)),
            self.branch(f"{name}.branch3", channels, (inner,), tall, wide, tall, (192, *WIDE)),
            self.pooled(f"{name}.branch4", channels, 192),
        )

    def d(self, name: str, channels: int) -> Parallel:
        return Parallel(
            self.branch(f"{name}.branch1", channels, (192,), (320, 3, 2)),
            self.branch(f"{name}.branch2", channels, (192,), (192, *WIDE), (192, *TALL), (192, 3, 2)),
            Pool(MaxPool(self._variables, 3, 2)),
        )

    def e(self, name: str, channels: int) -> Parallel:
        return Parallel(
            self.branch(f"{name}.branch1", channels, (320,)),
            self.split(f"{name}.branch2", channels, (384,)),
            self.split(f"{name}.branch3", channels, (448,), (384, 3, 1, 1)),
            self.pooled(f"{name}.branch4", channels, 192),
        )


class Head:
    """Auxiliary head: 5x5 average pool at stride 3, 1x1 and 5x5 block, global average, dense layer."""

    def __init__(self, variables: Variables, blocks: Blocks, classes: int) -> None:
        self._steps = blocks.branch("aux", blocks(768), (128,), (768, 5), pool=AveragePool(variables, 5, 3))
        self._head = Dense(variables, "aux.head", blocks(768), classes)

    def __call__(self, x: tf.Tensor, training: bool) -> tf.Tensor:
        return self._head(tf.reduce_mean(self._steps(x, training), (1, 2)))


class Network:
    """The network: images (N, H, W, C) -> logits (N, classes), and those of the auxiliary head if there is one."""

    def __init__(self, sizes: dict[str, Any], variables: Variables) -> None:
        make = count = Blocks(variables, sizes["width"])
        self._stem = [
            make.block("conv1", sizes["channels"], 32, 3, 2),
            make.block("conv2", count(32), 32, 3),
            make.block("conv3", count(32), 64, 3, 1, 1),
            Pool(MaxPool(variables, 3, 2)),
            make.block("conv4", count(64), 80),
            make.block("conv5", count(80), 192, 3),
            Pool(MaxPool(variables, 3, 2)),
        ]
        middle = (
            *(make.a(f"a{i}", count(width), pool) for i, width, pool in ((1, 192, 32), (2, 256, 64), (3, 288, 64))),
            make.b("b", count(288)),
            *(make.c(f"c{i}", count(768), inner) for i, inner in enumerate((128, 160, 160, 192), 1)),
        )
        self._aux = Head(variables, make, sizes["classes"]) if sizes["aux"] else None
        last = make.d("d", count(768)), make.e("e1", count(1280)), make.e("e2", count(2048))
        self._middle, self._last = ([variables.block(each) for each in parts] for parts in (middle, last))
        self._head = Dense(variables, "head", count(2048), sizes["classes"])
        self._dropout = Dropout(variables, 0.5)

    def __call__(self, image: tf.Tensor, training: bool) -> dict[str, tf.Tensor]:
        x = image
        for part in (*self._stem, *self._middle):
            x = part(x, training)
        outputs = {"aux": self._aux(x, training)} if self._aux else {}
        for part in self._last:
            x = part(x, training)
        return {"logits": self._head(self._dropout(tf.reduce_mean(x, (1, 2)), training)), **outputs}


INPUTS = ("image",)


def build(sizes: dict[str, Any], variables: Variables) -> Network:
    """Return the network; it creates its variables in `variables`."""
    return Network(sizes, variables)


def loss(outputs: dict[str, tf.Tensor], batch: dict[str, tf.Tensor]) -> tf.Tensor:
    """Mean softmax cross-entropy from logits; the auxiliary head adds 0.4 times its own."""
    each = {name: _cross_entropy(logits, batch["label"]) for name, logits in outputs.items()}
    return each["logits"] + 0.4 * each["aux"] if "aux" in each else each["logits"]


def _cross_entropy(logits: tf.Tensor, label: tf.Tensor) -> tf.Tensor:
    return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(label, logits))
