"""ResNet-18 in TensorFlow: functions over variables named as the canonical tensors are; images are NHWC."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from steelyard_worker.frameworks.tensorflow.layers import BatchNorm, Convolution, Dense, Variables


class Block:
    """Basic block: two 3x3 convolutions, and a projected shortcut where the shape changes."""

    def __init__(self, variables: Variables, name: str, channels: int, out: int, stride: int) -> None:
        self.conv1 = Convolution(variables, f"{name}.conv1", channels, out, 3, stride, 1)
        self.bn1 = BatchNorm(variables, f"{name}.bn1", out, epsilon=1e-5, momentum=0.1)
        self.conv2 = Convolution(variables, f"{name}.conv2", out, out, 3, 1, 1)
        self.bn2 = BatchNorm(variables, f"{name}.bn2", out, epsilon=1e-5, momentum=0.1)
        self.projected = stride != 1 or channels != out
        if self.projected:
            self.conv = Convolution(variables, f"{name}.shortcut.conv", channels, out, 1, stride, 0)
            self.bn = BatchNorm(variables, f"{name}.shortcut.bn", out, epsilon=1e-5, momentum=0.1)

    def __call__(self, x: tf.Tensor, training: bool) -> tf.Tensor:
        y = tf.nn.relu(self.bn1(self.conv1(x), training))
        shortcut = self.bn(self.conv(x), training) if self.projected else x
        return tf.nn.relu(self.bn2(self.conv2(y), training) + shortcut)


class Network:
    """The whole network: images (N, H, W, C) -> logits (N, classes)."""

    def __init__(self, sizes: dict[str, Any], variables: Variables) -> None:
        width, self.stem = sizes["width"], sizes["stem"]
        large = self.stem == "imagenet"
        kernel, stride, padding = (7, 2, 3) if large else (3, 1, 1)
        self.conv = Convolution(variables, "stem.conv", sizes["channels"], width, kernel, stride, padding)
        self.bn = BatchNorm(variables, "stem.bn", width, epsilon=1e-5, momentum=0.1)
        self.blocks, channels = [], width
        for stage in range(1, 5):
            out = width * 2 ** (stage - 1)
            for block in range(2):
                stride = 2 if stage > 1 and block == 0 else 1
                self.blocks.append(Block(variables, f"stage{stage}.block{block}", channels, out, stride))
                channels = out
        self.head = Dense(variables, "head", channels, sizes["classes"])

    def __call__(self, image: tf.Tensor, training: bool) -> dict[str, tf.Tensor]:
        x = self._pool(tf.nn.relu(self.bn(self.conv(image), training)))
        for block in self.blocks:
            x = block(x, training)
        return {"logits": self.head(tf.reduce_mean(x, (1, 2)))}

    def _pool(self, x: tf.Tensor) -> tf.Tensor:
        if self.stem == "cifar":
            return x
        if self.stem == "seed":
            return tf.nn.max_pool2d(x, 2, 2, "VALID")
        padded = tf.pad(x, ((0, 0), (1, 1), (1, 1), (0, 0)), constant_values=x.dtype.min)
        return tf.nn.max_pool2d(padded, 3, 2, "VALID")


INPUTS = ("image",)


def build(sizes: dict[str, Any], variables: Variables) -> Network:
    """Return the network, its variables created in `variables`."""
    return Network(sizes, variables)


def loss(outputs: dict[str, tf.Tensor], batch: dict[str, tf.Tensor]) -> tf.Tensor:
    """Mean softmax cross-entropy from logits."""
    return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(batch["label"], outputs["logits"]))
