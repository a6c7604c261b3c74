"""GoogLeNet in TensorFlow: functions over variables with the canonical names; images are NHWC."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from steelyard_worker.frameworks.tensorflow.blocks import Branch, ConvBlock
from steelyard_worker.frameworks.tensorflow.layers import Dense, Dropout, Variables
from steelyard_worker.frameworks.tensorflow.pooling import MaxPool, adaptive_average_pool

EPSILON = 1e-3
# name: channels of 1x1; 1x1, 3x3; 1x1, 3x3 (or 5x5); after the pool, at width 64
INCEPTIONS = {
    "inception3a": (64, 96, 128, 16, 32, 32),
    "inception3b": (128, 128, 192, 32, 96, 64),
    "inception4a": (192, 96, 208, 16, 48, 64),
    "inception4b": (160, 112, 224, 24, 64, 64),
    "inception4c": (128, 128, 256, 24, 64, 64),
    "inception4d": (112, 144, 288, 32, 64, 64),
    "inception4e": (256, 160, 320, 32, 128, 128),
    "inception5a": (256, 160, 320, 32, 128, 128),
    "inception5b": (384, 192, 384, 48, 128, 128),
}


class Inception:
    """Four branches concatenated along the channels."""

    def __init__(self, variables: Variables, name: str, channels: int, counts: list[int], five_by_five: bool) -> None:
        one, reduce3, three, reduce5, five, pool = counts
        last = (five, 5, 1, 2) if five_by_five else (five, 3, 1, 1)
        branches = ((one,),), ((reduce3,), (three, 3, 1, 1)), ((reduce5,), last), ((pool,),)
        pools = None, None, None, MaxPool(variables, 3, 1, 1)
        self._branches = [
            Branch(variables, f"{name}.branch{number}", channels, *steps, epsilon=EPSILON, pool=pool)
            for number, (steps, pool) in enumerate(zip(branches, pools, strict=True), 1)
        ]

    def __call__(self, x: tf.Tensor, training: bool) -> tf.Tensor:
        return tf.concat([branch(x, training) for branch in self._branches], axis=3)


class Head:
    """Auxiliary head: average pool to 4x4, 1x1 block, two dense layers."""

    def __init__(self, variables: Variables, name: str, channels: int, width: int, classes: int) -> None:
        self._reduce = ConvBlock(variables, f"{name}.reduce", channels, 2 * width, epsilon=EPSILON)
        self._hidden = Dense(variables, f"{name}.hidden", 2 * width * 16, 16 * width)
        self._head, self._dropout = Dense(variables, f"{name}.head", 16 * width, classes), Dropout(variables, 0.7)

    def __call__(self, x: tf.Tensor, training: bool) -> tf.Tensor:
        x = self._reduce(adaptive_average_pool(x, 4), training)
        flat = tf.reshape(tf.transpose(x, (0, 3, 1, 2)), (x.shape[0], -1))  # the canonical order is C, H, W (P-17)
        return self._head(self._dropout(tf.nn.relu(self._hidden(flat)), training))


class Network:
    """The network: images (N, H, W, C) -> logits (N, classes), and those of the auxiliary heads if there are any."""

    def __init__(self, sizes: dict[str, Any], variables: Variables) -> None:
        width = sizes["width"]
        self._conv1 = ConvBlock(variables, "conv1", sizes["channels"], width, 7, 2, 3, epsilon=EPSILON)
        self._conv2 = ConvBlock(variables, "conv2", width, width, epsilon=EPSILON)
        self._conv3 = ConvBlock(variables, "conv3", width, 3 * width, 3, 1, 1, epsilon=EPSILON)
        self._inceptions, self._heads, channels = {}, {}, 3 * width
        for name, counts in INCEPTIONS.items():
            scaled = [count * width // 64 for count in counts]
            inception = Inception(variables, name, channels, scaled, sizes["five_by_five"])
            self._inceptions[name] = variables.block(inception)
            channels = scaled[0] + scaled[2] + scaled[4] + scaled[5]
            if sizes["aux"] and name in ("inception4a", "inception4d"):
                aux = "aux1" if name == "inception4a" else "aux2"
                self._heads[name] = aux, Head(variables, aux, channels, width, sizes["classes"])
        self._pool3 = MaxPool(variables, 3, 2, ceil=True)
        self._pools = {"inception3b": self._pool3, "inception4e": MaxPool(variables, 2, 2, ceil=True)}
        self._head = Dense(variables, "head", channels, sizes["classes"])
        self._dropout = Dropout(variables, 0.2)

    def __call__(self, image: tf.Tensor, training: bool) -> dict[str, tf.Tensor]:
        x = self._conv2(self._pool3(self._conv1(image, training)), training)
        x, outputs = self._pool3(self._conv3(x, training)), {}
        for name, inception in self._inceptions.items():
            x = inception(x, training)
            if name in self._heads:
                aux, head = self._heads[name]
                outputs[aux] = head(x, training)
            x = self._pools[name](x) if name in self._pools else x
        return {"logits": self._head(self._dropout(tf.reduce_mean(x, (1, 2)), training)), **outputs}


INPUTS = ("image",)


def build(sizes: dict[str, Any], variables: Variables) -> Network:
    """Return the network; it creates its variables in `variables`."""
    return Network(sizes, variables)


def loss(outputs: dict[str, tf.Tensor], batch: dict[str, tf.Tensor]) -> tf.Tensor:
    """Mean softmax cross-entropy from logits; each auxiliary head adds 0.3 times its own."""
    each = {name: _cross_entropy(logits, batch["label"]) for name, logits in outputs.items()}
    return each["logits"] + 0.3 * (each["aux1"] + each["aux2"]) if "aux1" in each else each["logits"]


def _cross_entropy(logits: tf.Tensor, label: tf.Tensor) -> tf.Tensor:
    return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(label, logits))
