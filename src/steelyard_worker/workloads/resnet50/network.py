"""ResNet-50 (He et al. 2016, arXiv 1512.03385) in canonical form; `residual` has its parts.

`variant` selects the convolution of a bottleneck that has the stride: "v1.5" the 3x3, "v1" the first 1x1, as in the paper. With
`freeze_backbone` only the dense layer is trained, and batch norm also normalises by its running statistics in training.
"""

from __future__ import annotations

from typing import Any

from steelyard_worker import classification
from steelyard_worker.convolutional import LARGE_ACTIVATIONS, Extent
from steelyard_worker.network import Adversarial, Input, Network
from steelyard_worker.residual import Layers, blocks, names_of_blocks, probes
from steelyard_worker.sizes import one_of

EXPANSION = 4
VARIANTS = ("v1.5", "v1")


def describe(sizes: dict[str, Any]) -> Network:
    """Sizes: channels, image (pixels a side), width and blocks (of the stages), variant, freeze_backbone, classes, batch."""
    one_of(sizes, "variant", *VARIANTS)
    layers = Layers(frozen=sizes["freeze_backbone"])
    image = Input("image", (sizes["channels"], sizes["image"], sizes["image"]), "float32")
    x = layers.stem(Extent(*image.shape), sizes["width"], "imagenet")
    for name, _, within, stride in blocks(sizes["width"], sizes["blocks"], EXPANSION):
        x = _block(layers, name, x, within, strides(sizes["variant"], stride))
    layers.head(x.channels, sizes["classes"])
    label = Input("label", (), "int32", high=sizes["classes"])
    predictions = classification.predictions(sizes["classes"])
    # Without batch statistics, larger scales would multiply from layer to layer.
    adversarial = Adversarial() if sizes["freeze_backbone"] else LARGE_ACTIVATIONS
    return Network(
        tuple(layers.parameters),
        (image, label),
        layers.macs,
        layers.activations,
        layers.frozen_macs,
        predictions=predictions,
        adversarial=adversarial,
        probes=probes(sizes["blocks"]),
        likelihood=True,
        blocks=() if sizes["freeze_backbone"] else names_of_blocks(sizes["blocks"]),
    )


def strides(variant: str, stride: int) -> tuple[int, int]:
    """Strides of a bottleneck's first 1x1 and of its 3x3 convolution."""
    return (stride, 1) if variant == "v1" else (1, stride)


def _block(layers: Layers, name: str, x: Extent, within: int, stride: tuple[int, int]) -> Extent:
    """Bottleneck: 1x1, 3x3 and 1x1 convolution, and a projected shortcut where the shape changes."""
    y = layers.conv(f"{name}.conv1", f"{name}.bn1", x, within, 1, stride[0])
    y = layers.conv(f"{name}.conv2", f"{name}.bn2", y, within, 3, stride[1])
    y = layers.conv(f"{name}.conv3", f"{name}.bn3", y, within * EXPANSION, 1)
    layers.shortcut(name, x, within * EXPANSION, stride[0] * stride[1])
    return y
