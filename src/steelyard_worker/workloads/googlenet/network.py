"""GoogLeNet (Szegedy et al. 2015, arXiv 1409.4842) with batch norm in place of local response norm, in canonical form.

Every convolution is bias-free and followed by batch norm (epsilon 1e-3, weight of the new statistic 0.1) and ReLU. The third
branch of a block is 3x3, as in both published programs, or 5x5 as in the paper with `five_by_five`. `aux` adds the heads
after 4a and 4d; they are also outputs in inference, so that training and inference run the same graph. The knob `dropout` adds
dropout of 0.2 before the last dense layer, and of 0.7 in the heads.
"""

from __future__ import annotations

from typing import Any

from steelyard_worker import classification
from steelyard_worker.convolutional import LARGE_ACTIVATIONS, Extent, Layers, Step, concatenated, window
from steelyard_worker.network import Input, Network

INITIAL = "trunc_normal:0.01"
# Channels of every block at width 64: 1x1; 1x1, 3x3; 1x1, 3x3 (or 5x5); after the pool.
BLOCKS = {
    "inception3a": (64, 96, 128, 16, 32, 32),
    "inception3b": (128, 128, 192, 32, 96, 64),
    "inception4a": (192, 96, 208, 16, 48, 64),
    "inception4b": (160, 112, 224, 24, 64, 64),
    "inception4c": (128, 128, 256, 24, 64, 64),
    "inception4d": (112, 144, 288, 32, 64, 64),
    "inception4e": (256, 160, 320, 32, 128, 128),
    "inception5a": (256, 160, 320, 32, 128, 128),
    "inception5b": (384, 192, 384, 48, 128, 128),
}
# (window, stride) of the max pool after a block, rounded up.
POOLS = {"inception3b": (3, 2), "inception4e": (2, 2)}
HEADS = {"inception4a": "aux1", "inception4d": "aux2"}


def describe(sizes: dict[str, Any]) -> Network:
    """Sizes: channels, image (pixels a side), width (of the first convolution), five_by_five, aux, beta, classes, batch.

    Shifts of batch norms are initialised with zero, or with a ramp up to `beta` over the channels.
    """
    layers, width = Layers(INITIAL, sizes["beta"]), sizes["width"]
    x = layers.block("conv1", Extent(sizes["channels"], sizes["image"], sizes["image"]), Step(width, 7, 2, 3))
    x = layers.block("conv2", window(x, 3, 2, ceil=True), Step(width))
    x = layers.block("conv3", x, Step(3 * width, 3, 1, 1))
    x = window(x, 3, 2, ceil=True)
    for name, counts in BLOCKS.items():
        x = _inception(layers, name, x, [count * width // 64 for count in counts], sizes["five_by_five"])
        if sizes["aux"] and name in HEADS:
            _head(layers, HEADS[name], x, width, sizes["classes"])
        x = window(x, *POOLS[name], ceil=True) if name in POOLS else x
    layers.dense("head", x.channels, sizes["classes"], INITIAL)
    image = Input("image", (sizes["channels"], sizes["image"], sizes["image"]), "float32")
    label = Input("label", (), "int32", high=sizes["classes"])
    predictions = classification.predictions(sizes["classes"])
    return Network(
        tuple(layers.parameters),
        (image, label),
        layers.macs,
        layers.activations,
        predictions=predictions,
        adversarial=LARGE_ACTIVATIONS,
        probes=tuple(layers.probes),
        dropout=True,
        blocks=tuple(BLOCKS),
        likelihood=True,
        norm_epsilon=1e-3,
    )


def _inception(layers: Layers, name: str, x: Extent, counts: list[int], five_by_five: bool) -> Extent:
    one, reduce3, three, reduce5, five, pool = counts
    last = Step(five, 5, 1, 2) if five_by_five else Step(five, 3, 1, 1)
    return concatenated(
        (
            layers.branch(f"{name}.branch1", x, Step(one)),
            layers.branch(f"{name}.branch2", x, Step(reduce3), Step(three, 3, 1, 1)),
            layers.branch(f"{name}.branch3", x, Step(reduce5), last),
            layers.branch(f"{name}.branch4", window(x, 3, 1, 1), Step(pool)),
        )
    )


def _head(layers: Layers, name: str, x: Extent, width: int, classes: int) -> None:
    """Average pool to 4x4, 1x1 block, two dense layers."""
    flat = layers.block(f"{name}.reduce", Extent(x.channels, 4, 4), Step(2 * width)).channels * 16
    layers.dense(f"{name}.hidden", flat, 16 * width, INITIAL)
    layers.dense(f"{name}.head", 16 * width, classes, INITIAL)
