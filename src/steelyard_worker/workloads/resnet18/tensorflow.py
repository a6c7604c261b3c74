"""ResNet-18 in TensorFlow: functions over variables with the canonical names; images are NHWC."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from steelyard_worker.frameworks.tensorflow.layers import Dense, Variables
from steelyard_worker.frameworks.tensorflow.residual import Classifier, ConvNorm, Shortcut, Stem
from steelyard_worker.probes import probe


class Block:
    """Basic block: two 3x3 convolutions, and a projected shortcut where the shape changes."""

    def __init__(self, variables: Variables, name: str, channels: int, out: int, stride: int) -> None:
        self.first = ConvNorm(variables, f"{name}.conv1", f"{name}.bn1", channels, out, 3, stride)
        self.second = ConvNorm(variables, f"{name}.conv2", f"{name}.bn2", out, out, 3)
        self.shortcut = Shortcut(variables, name, channels, out, stride)
        self.name = name

    def __call__(self, x: tf.Tensor, training: bool) -> tf.Tensor:
        y = tf.nn.relu(self.first(x, training))
        return probe(self.name, tf.nn.relu(self.second(y, training) + self.shortcut(x, training)))


INPUTS = ("image",)


def build(sizes: dict[str, Any], variables: Variables) -> Classifier:
    """Return the network; it creates its variables in `variables`."""
    first, blocks = Stem(variables, sizes["channels"], sizes["width"], sizes["stem"]), []
    channels = sizes["width"]
    for stage in range(4):
        out = sizes["width"] * 2**stage
        for block in range(2):
            stride = 2 if stage and not block else 1
            name = f"stage{stage + 1}.block{block}"
            blocks.append(variables.block(Block(variables, name, channels, out, stride)))
            channels = out
    return Classifier(first, blocks, Dense(variables, "head", channels, sizes["classes"]))


def loss(outputs: dict[str, tf.Tensor], batch: dict[str, tf.Tensor]) -> tf.Tensor:
    """Mean softmax cross-entropy from logits."""
    return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(batch["label"], outputs["logits"]))
