"""VGG-16 in TensorFlow: functions over variables with the canonical names; images are NHWC."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from steelyard_worker import dropout
from steelyard_worker.frameworks.tensorflow.layers import BatchNorm, Convolution, Dense, Dropout, Variables
from steelyard_worker.frameworks.tensorflow.pooling import MaxPool
from steelyard_worker.probes import probe

STAGES = ((2, 1), (2, 2), (3, 4), (3, 8), (3, 8))


class Layer:
    """3x3 convolution with bias, or with batch norm instead of the bias, then ReLU, and dropout if its rate is above 0."""

    def __init__(
        self, variables: Variables, stage: str, number: int, channels: int, out: int, normed: bool, rate: float
    ) -> None:
        self._conv = Convolution(variables, f"{stage}.conv{number}", channels, out, 3, 1, 1, bias=not normed)
        self._norm = BatchNorm(variables, f"{stage}.bn{number}", out, epsilon=1e-5, momentum=0.1) if normed else None
        self._dropout = Dropout(variables, rate) if rate else None

    def __call__(self, x: tf.Tensor, training: bool) -> tf.Tensor:
        x = self._conv(x)
        x = tf.nn.relu(self._norm(x, training) if self._norm else x)
        return self._dropout(x, training) if self._dropout else x


class Stage:
    """`count` layers, then a 2x2 max pool."""

    def __init__(
        self, variables: Variables, place: int, channels: int, out: int, count: int, sizes: dict[str, Any]
    ) -> None:
        wide, name = [channels] + [out] * (count - 1), f"stage{place}"
        self._layers = []
        for number, each in enumerate(wide, 1):
            rate = dropout.after_convolution(place, number, count) if sizes.get("conv_dropout") else 0.0
            self._layers.append(Layer(variables, name, number, each, out, sizes["batch_norm"], rate))
        self._pool, self._name = MaxPool(variables, 2, 2), name

    def __call__(self, x: tf.Tensor, training: bool) -> tf.Tensor:
        for layer in self._layers:
            x = layer(x, training)
        return probe(self._name, self._pool(x))


class Network:
    """The network: images (N, H, W, C) -> logits (N, classes); batch norms of a frozen body are in inference mode."""

    def __init__(self, sizes: dict[str, Any], variables: Variables) -> None:
        channels, extent, self._frozen = sizes["channels"], sizes["image"], sizes["freeze_backbone"]
        self._stages = []
        for number, (count, factor) in enumerate(STAGES, 1):
            out = sizes["width"] * factor
            stage = Stage(variables, number, channels, out, count, sizes)
            self._stages.append(variables.block(stage))
            channels, extent = out, extent // 2
        features, self._hidden = channels * extent * extent, []
        self._dropout = Dropout(variables, dropout.OF_FEATURES) if sizes.get("conv_dropout") else None
        for name in ("dense1", "dense2") if sizes["dense"] else ():
            self._hidden.append((Dense(variables, name, features, sizes["dense"]), Dropout(variables, 0.5)))
            features = sizes["dense"]
        self._head = Dense(variables, "head", features, sizes["classes"])

    def __call__(self, image: tf.Tensor, training: bool) -> dict[str, tf.Tensor]:
        x = image
        for stage in self._stages:
            x = stage(x, training and not self._frozen)
        # The canonical order of the flattened image is channels first (P-17).
        x = tf.reshape(tf.transpose(x, (0, 3, 1, 2)), (x.shape[0], -1))
        x = self._dropout(x, training) if self._dropout else x
        for dense, after in self._hidden:
            x = after(tf.nn.relu(dense(x)), training)
        return {"logits": self._head(x)}


INPUTS = ("image",)


def build(sizes: dict[str, Any], variables: Variables) -> Network:
    """Return the network; it creates its variables in `variables`."""
    return Network(sizes, variables)


def loss(outputs: dict[str, tf.Tensor], batch: dict[str, tf.Tensor]) -> tf.Tensor:
    """Mean softmax cross-entropy from logits."""
    return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(batch["label"], outputs["logits"]))
