"""Inception v3 from keras.applications."""

import keras
import numpy as np

SOURCE = "keras.applications.InceptionV3 (Keras 3.15.1)"
DIFFERS = (
    "batch norms without scale; average pools exclude padding from the divisor; the running statistics'"
    " momentum is 0.99; biased running variances"
)
MORE = -17_216


def model(sizes):
    """Return the network; the package has only width 32 without the auxiliary head."""
    if sizes["width"] != 32 or sizes["aux"]:
        raise SystemExit("keras.applications has Inception v3 at width 32 without an auxiliary head only.")
    shape = (sizes["image"], sizes["image"], sizes["channels"])
    return keras.applications.InceptionV3(
        weights=None, input_shape=shape, classes=sizes["classes"], classifier_activation=None
    )


def inputs(batch):
    """Images, channels last."""
    return np.ascontiguousarray(batch["image"].transpose(0, 2, 3, 1))


def loss(logits, batch):
    """Mean softmax cross-entropy from logits."""
    return keras.losses.SparseCategoricalCrossentropy(from_logits=True)(batch["label"], logits)
