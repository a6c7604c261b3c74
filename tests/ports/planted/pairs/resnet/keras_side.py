"""ResNet of keras.applications with one block in each of its stages, with the weights that the PyTorch side has saved."""

from __future__ import annotations

from pathlib import Path

import keras
import numpy as np
from keras.src.applications import resnet


def build(frozen=True):
    weights = np.load(Path(__file__).parent / "weights.npz")

    def stages(x):
        for n, (width, stride) in enumerate(((64, 1), (128, 2), (256, 2), (512, 2))):
            x = resnet.stack_residual_blocks_v1(x, width, 1, stride1=stride, name=f"conv{n + 2}")
        return x

    model = resnet.ResNet(
        stages,
        preact=False,
        use_bias=True,
        include_top=True,
        weights=None,
        input_shape=(64, 64, 3),
        classes=7,
        classifier_activation=None,
        weights_name="",
    )
    give(model, weights, "conv1", "conv1", "bn1")
    for n in range(1, 5):
        own = f"layer{n}.0."
        give(model, weights, f"conv{n + 1}_block1_0", f"{own}downsample.0", f"{own}downsample.1")
        for part in (1, 2, 3):
            give(model, weights, f"conv{n + 1}_block1_{part}", f"{own}conv{part}", f"{own}bn{part}")
    for layer in model.layers:
        if isinstance(layer, keras.layers.BatchNormalization):
            layer.trainable = not frozen
    model.get_layer("predictions").set_weights([weights["fc.weight"].T, weights["fc.bias"]])
    return model


def give(model, weights, name, convolution, norm):
    """Give a convolution and its norm their weights; torchvision's convolutions have no bias."""
    kernel = weights[f"{convolution}.weight"].transpose(2, 3, 1, 0)
    model.get_layer(f"{name}_conv").set_weights([kernel, np.zeros(kernel.shape[-1], "f4")])
    roles = ("weight", "bias", "running_mean", "running_var")
    model.get_layer(f"{name}_bn").set_weights([weights[f"{norm}.{role}"] for role in roles])


def inputs(arrays):
    """Images of Keras have their channels last."""
    return keras.ops.transpose(arrays["x"], (0, 2, 3, 1))
