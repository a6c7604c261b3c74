"""Image (C, H, W) -> conv 3x3 -> relu -> conv 3x3 -> relu -> mean over positions -> dense; only the dense layer is trained."""

from __future__ import annotations

from typing import Any

from steelyard_worker.network import Input, Network, Parameter


def describe(sizes: dict[str, Any]) -> Network:
    """Return the network; `frozen_macs` is left out, as in a network of somebody who does not know it."""
    channels, classes, image = sizes["channels"], sizes["classes"], sizes["image"]
    parameters = (
        Parameter("first.weight", (channels, 3, 3, 3), "conv", "glorot_uniform", trainable=False),
        Parameter("second.weight", (channels, channels, 3, 3), "conv", "glorot_uniform", trainable=False),
        Parameter("head.weight", (classes, channels), "dense", "glorot_uniform"),
        Parameter("head.bias", (classes,), "bias", "constant:0"),
    )
    inputs = (Input("image", (3, image, image), "float32"), Input("label", (), "int32", high=classes))
    macs = image**2 * 9 * channels * (3 + channels) + channels * classes
    return Network(parameters, inputs, macs, likelihood=True)
