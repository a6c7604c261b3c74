"""The network in TensorFlow: functions over variables with the canonical names; images are (N, H, W, C)."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from steelyard_worker.frameworks.tensorflow.layers import Dense, Variables


class Network:
    """Images (N, H, W, C) -> logits (N, classes)."""

    def __init__(self, sizes: dict[str, Any], variables: Variables) -> None:
        self.pixels = sizes["channels"] * sizes["image"] ** 2
        self.first = Dense(variables, "first", self.pixels, sizes["hidden"])
        self.head = Dense(variables, "head", sizes["hidden"], sizes["classes"])

    def __call__(self, image: tf.Tensor, training: bool) -> dict[str, tf.Tensor]:
        del training  # this network is the same in training and inference
        flat = tf.reshape(
            tf.transpose(image, (0, 3, 1, 2)), (-1, self.pixels)
        )  # channel, row, column: the canonical order
        return {"logits": self.head(tf.nn.relu(self.first(flat)))}


# Inputs of the network, in order; `loss` gets all inputs.
INPUTS = ("image",)


def build(sizes: dict[str, Any], variables: Variables) -> Network:
    """Return the network; it creates its variables in `variables`."""
    return Network(sizes, variables)


def loss(outputs: dict[str, tf.Tensor], batch: dict[str, tf.Tensor]) -> tf.Tensor:
    """Mean softmax cross-entropy from logits."""
    return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(batch["label"], outputs["logits"]))
