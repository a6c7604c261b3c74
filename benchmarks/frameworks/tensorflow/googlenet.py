"""GoogLeNet with batch norm in Keras layers, in the style of Inception v3 in keras.applications."""

from pathlib import Path

import keras
import numpy as np
from keras import layers

from steelyard_worker.network import load

SOURCE = (
    "written by hand from keras.layers; neither keras.applications nor keras_hub has GoogLeNet, and tf_slim's is a "
    "TensorFlow 1 graph"
)
DIFFERS = "biased running variances"

BLOCKS = load(Path(__file__).parent.parent, "published").GOOGLENET


def conv_norm(x, out, kernel, stride=1, padding="same"):
    """Bias-free convolution, batch norm (epsilon 1e-3 is Keras' own), ReLU."""
    x = layers.Conv2D(out, kernel, stride, padding, use_bias=False)(x)
    return layers.ReLU()(layers.BatchNormalization(momentum=0.9)(x))


def inception(x, channels, third):
    """Four branches, concatenated in channels."""
    one, reduce3, three, reduce5, five, pool = channels
    return layers.Concatenate()(
        [
            conv_norm(x, one, 1),
            conv_norm(conv_norm(x, reduce3, 1), three, 3),
            conv_norm(conv_norm(x, reduce5, 1), five, third),
            conv_norm(layers.MaxPooling2D(3, 1, "same")(x), pool, 1),
        ]
    )


def model(sizes):
    """Return the network. It has no auxiliary heads, like all published presets."""
    if sizes["aux"]:
        raise SystemExit("This reference has no auxiliary heads.")
    width, third = sizes["width"], 5 if sizes["five_by_five"] else 3
    image = keras.Input((sizes["image"], sizes["image"], sizes["channels"]), batch_size=sizes["batch"])
    x = conv_norm(layers.ZeroPadding2D(3)(image), width, 7, 2, "valid")
    x = conv_norm(layers.MaxPooling2D(3, 2, "same")(x), width, 1)
    x = layers.MaxPooling2D(3, 2, "same")(conv_norm(x, 3 * width, 3))
    for block in BLOCKS:
        if isinstance(block, int):
            x = layers.MaxPooling2D(block, 2, "same")(x)
        else:
            x = inception(x, [channels * width // 64 for channels in block], third)
    return keras.Model(image, layers.Dense(sizes["classes"])(layers.GlobalAveragePooling2D()(x)))


def inputs(batch):
    """Images, channels last."""
    return np.ascontiguousarray(batch["image"].transpose(0, 2, 3, 1))


def loss(logits, batch):
    """Mean softmax cross-entropy from logits."""
    return keras.losses.SparseCategoricalCrossentropy(from_logits=True)(batch["label"], logits)
