"""VGG-16 of keras.applications and a dense layer, with the weights that the PyTorch side has saved."""

from __future__ import annotations

from pathlib import Path

import keras
import numpy as np
from keras import layers


def build():
    weights = np.load(Path(__file__).parent / "weights.npz")
    body = keras.applications.VGG16(include_top=False, weights=None, input_shape=(64, 64, 3))
    model = keras.Model(body.inputs, layers.Dense(6, name="head")(layers.Flatten()(body.outputs[0])))
    kernels = [each for each in model.layers if isinstance(each, layers.Conv2D)]
    names = [name.removesuffix(".weight") for name in weights if name.startswith("0.") and name.endswith(".weight")]
    for layer, name in zip(kernels, names, strict=True):
        layer.set_weights([weights[f"{name}.weight"].transpose(2, 3, 1, 0), weights[f"{name}.bias"]])
    kernel = weights["2.weight"].reshape(6, 512, 2, 2).transpose(2, 3, 1, 0).reshape(-1, 6)
    model.get_layer("head").set_weights([kernel, weights["2.bias"]])
    return model


def inputs(arrays):
    """Images of Keras have their channels last."""
    return keras.ops.transpose(arrays["x"], (0, 2, 3, 1))
