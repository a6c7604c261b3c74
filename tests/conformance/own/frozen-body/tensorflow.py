"""The network in TensorFlow; nothing is frozen here, because network.py says what is."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from steelyard_worker.frameworks.tensorflow.layers import Convolution, Dense, Variables


class Network:
    """Images (N, H, W, C) -> logits (N, classes)."""

    def __init__(self, sizes: dict[str, Any], variables: Variables) -> None:
        channels = sizes["channels"]
        self.first = Convolution(variables, "first", 3, channels, 3, 1, 1)
        self.second = Convolution(variables, "second", channels, channels, 3, 1, 1)
        self.head = Dense(variables, "head", channels, sizes["classes"])

    def __call__(self, image: tf.Tensor, training: bool) -> dict[str, tf.Tensor]:
        del training  # this network is the same in training and inference
        x = tf.nn.relu(self.second(tf.nn.relu(self.first(image))))
        return {"logits": self.head(tf.reduce_mean(x, (1, 2)))}


INPUTS = ("image",)


def build(sizes: dict[str, Any], variables: Variables) -> Network:
    """Return the network; it creates its variables in `variables`."""
    return Network(sizes, variables)


def loss(outputs: dict[str, tf.Tensor], batch: dict[str, tf.Tensor]) -> tf.Tensor:
    """Mean softmax cross-entropy from logits."""
    return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(batch["label"], outputs["logits"]))
