"""VGG-16 from keras.applications."""

import keras
import numpy as np

SOURCE = "keras.applications.VGG16 (Keras 3.15.1), with our widths of the dense layers"
DIFFERS = ""


def model(sizes):
    """Return the network; the package has only width 64, without batch norm."""
    if sizes["width"] != 64 or sizes["batch_norm"]:
        raise SystemExit("keras.applications has VGG-16 at width 64 without batch norm only.")
    shape = (sizes["image"], sizes["image"], sizes["channels"])
    body = keras.applications.VGG16(include_top=False, weights=None, input_shape=shape)
    body.trainable = not sizes["freeze_backbone"]
    x = keras.layers.Flatten()(body.outputs[0])
    for _ in range(2 if sizes["dense"] else 0):
        x = keras.layers.Dense(sizes["dense"], "relu")(x)
    return keras.Model(body.inputs, keras.layers.Dense(sizes["classes"])(x))


def inputs(batch):
    """Images, channels last."""
    return np.ascontiguousarray(batch["image"].transpose(0, 2, 3, 1))


def loss(logits, batch):
    """Mean softmax cross-entropy from logits."""
    return keras.losses.SparseCategoricalCrossentropy(from_logits=True)(batch["label"], logits)
