"""Inception v3 from Keras' own applications."""

import keras
import numpy as np

SOURCE = "keras.applications.InceptionV3 (Keras 3.15.1)"
DIFFERS = (
    "no scale in its batch norms; average pools leave padding out of the divisor; the running statistics'"
    " momentum is 0.99; its running variances are the biased ones"
)
MORE = -17_216


def model(sizes):
    """Only width 32 without the auxiliary head is its builder's; others are refused."""
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
