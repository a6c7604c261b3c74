"""ResNet-50 in TensorFlow: functions over variables with the canonical names; images are NHWC."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from steelyard_worker.frameworks.tensorflow.layers import Dense, Variables
from steelyard_worker.frameworks.tensorflow.residual import Classifier, ConvNorm, Shortcut, Stem
from steelyard_worker.probes import probe


class Block:
    """Bottleneck: 1x1, 3x3 and 1x1 convolution, and a projected shortcut where the shape changes."""

    def __init__(self, variables: Variables, name: str, channels: int, within: int, first: int, second: int) -> None:
        self.first = ConvNorm(variables, f"{name}.conv1", f"{name}.bn1", channels, within, 1, first)
        self.second = ConvNorm(variables, f"{name}.conv2", f"{name}.bn2", within, within, 3, second)
        self.third = ConvNorm(variables, f"{name}.conv3", f"{name}.bn3", within, 4 * within, 1)
        self.shortcut = Shortcut(variables, name, channels, 4 * within, first * second)
        self.name = name

    def __call__(self, x: tf.Tensor, training: bool) -> tf.Tensor:
        y = tf.nn.relu(self.first(x, training))
        y = tf.nn.relu(self.second(y, training))
        return probe(self.name, tf.nn.relu(self.third(y, training) + self.shortcut(x, training)))


INPUTS = ("image",)


def build(sizes: dict[str, Any], variables: Variables) -> Classifier:
    """Return the network; it creates its variables in `variables`."""
    first, blocks = Stem(variables, sizes["channels"], sizes["width"], "imagenet"), []
    channels = sizes["width"]
    for stage, count in enumerate(sizes["blocks"]):
        within = sizes["width"] * 2**stage
        for block in range(count):
            stride = 2 if stage and not block else 1
            strides = (stride, 1) if sizes["variant"] == "v1" else (1, stride)
            name = f"stage{stage + 1}.block{block}"
            blocks.append(variables.block(Block(variables, name, channels, within, *strides)))
            channels = 4 * within
    return Classifier(first, blocks, Dense(variables, "head", channels, sizes["classes"]), sizes["freeze_backbone"])


def loss(outputs: dict[str, tf.Tensor], batch: dict[str, tf.Tensor]) -> tf.Tensor:
    """Mean softmax cross-entropy from logits."""
    return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(batch["label"], outputs["logits"]))
