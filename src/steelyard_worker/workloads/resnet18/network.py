"""ResNet-18 (He et al. 2016, arXiv 1512.03385) for small images, in canonical form; `residual` has its parts."""

from __future__ import annotations

from typing import Any

from steelyard_worker.convolutional import LARGE_ACTIVATIONS, Extent
from steelyard_worker.network import Input, Network
from steelyard_worker.residual import STEMS, Layers, blocks, names_of_blocks, probes
from steelyard_worker.sizes import one_of

BLOCKS = (2, 2, 2, 2)


def describe(sizes: dict[str, Any]) -> Network:
    """Sizes: channels, image (pixels a side), width (of stage 1), stem (one of `residual.STEMS`), classes, batch."""
    one_of(sizes, "stem", *STEMS)
    layers = Layers()
    image = Input("image", (sizes["channels"], sizes["image"], sizes["image"]), "float32")
    x = layers.stem(Extent(*image.shape), sizes["width"], sizes["stem"])
    for name, _, out, stride in blocks(sizes["width"], BLOCKS):
        x = _block(layers, name, x, out, stride)
    layers.head(x.channels, sizes["classes"])
    label = Input("label", (), "int32", high=sizes["classes"])
    return Network(
        tuple(layers.parameters),
        (image, label),
        layers.macs,
        layers.activations,
        adversarial=LARGE_ACTIVATIONS,
        probes=probes(BLOCKS),
        blocks=names_of_blocks(BLOCKS),
        likelihood=True,
    )


def _block(layers: Layers, name: str, x: Extent, out: int, stride: int) -> Extent:
    """Basic block: two 3x3 convolutions, and a projected shortcut where the shape changes."""
    y = layers.conv(f"{name}.conv1", f"{name}.bn1", x, out, 3, stride)
    y = layers.conv(f"{name}.conv2", f"{name}.bn2", y, out, 3)
    layers.shortcut(name, x, out, stride)
    return y
