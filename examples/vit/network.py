"""A small vision transformer (Dosovitskiy et al. 2021, arXiv 2010.11929) in canonical form, pre-norm, without dropout.

An image is cut into patches row by row; a patch is flattened as channel, row, column and projected to the width. Layer norms
have epsilon 1e-6 and the biased variance, GELU is the exact one, scores are divided by the root of a head's width.
"""

from __future__ import annotations

from typing import Any

from steelyard_worker.network import Input, Network, Parameter


def describe(sizes: dict[str, Any]) -> Network:
    """Sizes: channels, image and patch (pixels a side), width, heads, hidden, blocks, classes, batch."""
    width, hidden = sizes["width"], sizes["hidden"]
    patches = (sizes["image"] // sizes["patch"]) ** 2
    pixels = sizes["channels"] * sizes["patch"] ** 2
    parameters = [
        *dense("patch", pixels, width),
        Parameter("token", (1, width), "embedding", "trunc_normal:0.02"),
        Parameter("position", (patches + 1, width), "embedding", "trunc_normal:0.02"),
    ]
    for number in range(sizes["blocks"]):
        parameters += block(f"block{number}", width, hidden)
    parameters += [*norm("norm", width), *dense("head", width, sizes["classes"])]
    image = Input("image", (sizes["channels"], sizes["image"], sizes["image"]), "float32")
    label = Input("label", (), "int32", high=sizes["classes"])
    steps = patches + 1
    per_block = steps * (4 * width * width + 2 * width * hidden) + 2 * steps * steps * width
    macs = patches * pixels * width + sizes["blocks"] * per_block + width * sizes["classes"]
    probes = "patch", *(f"block{number}" for number in range(sizes["blocks"]))
    return Network(tuple(parameters), (image, label), macs, probes=probes, likelihood=True)


def block(name: str, width: int, hidden: int) -> list[Parameter]:
    """Attention and perceptron, each after a layer norm. The keys' bias has a gradient of zero: it shifts all scores equally."""
    attention = [each for part in ("query", "key", "value", "out") for each in dense(f"{name}.{part}", width, width)]
    parts = [
        Parameter(each.name, each.shape, each.kind, each.initial, zero_gradient=each.name == f"{name}.key.bias")
        for each in attention
    ]
    perceptron = [*dense(f"{name}.up", width, hidden), *dense(f"{name}.down", hidden, width)]
    return [*norm(f"{name}.norm1", width), *parts, *norm(f"{name}.norm2", width), *perceptron]


def dense(name: str, features: int, out: int) -> tuple[Parameter, Parameter]:
    """Kernel (out, in) and bias."""
    return (
        Parameter(f"{name}.weight", (out, features), "dense", "glorot_uniform"),
        Parameter(f"{name}.bias", (out,), "bias", "constant:0"),
    )


def norm(name: str, width: int) -> tuple[Parameter, Parameter]:
    """Scale and shift of a layer norm."""
    return (
        Parameter(f"{name}.gamma", (width,), "gamma", "constant:1"),
        Parameter(f"{name}.beta", (width,), "beta", "constant:0"),
    )
