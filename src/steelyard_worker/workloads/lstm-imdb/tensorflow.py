"""LSTM sentiment in TensorFlow: loops over time-major sequences, one bias each (so P-21 does not apply)."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from steelyard_worker.frameworks.tensorflow.layers import Dense, Variables
from steelyard_worker.frameworks.tensorflow.recurrent import Lstm
from steelyard_worker.probes import probe


class Network:
    """Word indices (N, T) -> logits (N, classes)."""

    def __init__(self, sizes: dict[str, Any], variables: Variables) -> None:
        self.embedding = variables.new("embedding.weight", sizes["vocabulary"], sizes["embedding"])
        directions = ("forward", "backward") if sizes["bidirectional"] else ("forward",)
        width, hidden = sizes["embedding"], sizes["hidden"]
        self.layers = []
        for layer in range(sizes["layers"]):
            self.layers.append([Lstm(variables, f"lstm.layer{layer}.{name}", width, hidden) for name in directions])
            width = hidden * len(directions)
        self.both_ends = sizes["readout"] == "first+last"
        self.head = Dense(variables, "head", width * (2 if self.both_ends else 1), sizes["classes"])

    def __call__(self, tokens: tf.Tensor, training: bool) -> dict[str, tf.Tensor]:
        del training  # this network is the same in training and inference
        x = probe("embedding", tf.gather(self.embedding, tf.transpose(tokens)))
        *inner, top = self.layers
        for directions in inner:
            x = _steps(directions, x)
        if not self.both_ends and len(top) == 1:
            return {"logits": self.head(probe("readout", top[0].last(x)))}
        x = _steps(top, x)
        read = tf.concat((x[0], x[-1]), axis=1) if self.both_ends else x[-1]
        return {"logits": self.head(probe("readout", read))}


def _steps(directions: list[Lstm], x: tf.Tensor) -> tf.Tensor:
    """Run every direction over (T, N, width) and concatenate: forward, then backward."""
    return tf.concat([lstm.every(x, backward=number == 1) for number, lstm in enumerate(directions)], axis=2)


INPUTS = ("tokens",)


def build(sizes: dict[str, Any], variables: Variables) -> Network:
    """Return the network; it creates its variables in `variables`."""
    return Network(sizes, variables)


def loss(outputs: dict[str, tf.Tensor], batch: dict[str, tf.Tensor]) -> tf.Tensor:
    """Mean softmax cross-entropy from logits."""
    return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(batch["label"], outputs["logits"]))
