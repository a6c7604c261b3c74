"""VGG-16 (Simonyan & Zisserman 2015, arXiv 1409.1556, configuration D) in canonical form.

3x3 convolutions with bias, ReLU after each, a 2x2 max pool (rounded down) after each stage; then the image is flattened,
channels first, into dense layers. With `batch_norm` convolutions have no bias and are followed by batch norm (epsilon 1e-5,
weight of the new statistic 0.1). `dense` is the width of the two hidden dense layers; 0 means there are none. The knob `dropout`
adds dropout of 0.5 after each of them, and with `conv_dropout`, which a preset need not have, also of 0.3 and 0.4 after
convolutions and of 0.5 after the last pool. With `freeze_backbone` the convolutions are not trained, and their batch norm also
uses its running statistics in training.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from steelyard_worker import classification
from steelyard_worker.convolutional import Extent, window
from steelyard_worker.network import Adversarial, Input, Network, Parameter, batch_norm
from steelyard_worker.sizes import require

if TYPE_CHECKING:
    from collections.abc import Iterator

# (number of convolutions, channels as a multiple of the first stage's) of every stage.
STAGES = ((2, 1), (2, 2), (3, 4), (3, 8), (3, 8))
DENSE_INITIAL = "normal:0.01"


def describe(sizes: dict[str, Any]) -> Network:
    """Sizes: channels, image (pixels a side), width (of stage 1), dense, batch_norm, freeze_backbone, classes, batch."""
    parameters: list[Parameter] = []
    image = Input("image", (sizes["channels"], sizes["image"], sizes["image"]), "float32")
    x, macs, activations = Extent(*image.shape), 0, 0
    for stage, number, channels, out, last in convolutions(sizes):
        found = _convolution(stage, number, channels, out, sizes["batch_norm"])
        parameters += [replace(each, trainable=not sizes["freeze_backbone"] and each.trainable) for each in found]
        x = replace(window(x, 3, 1, 1), channels=out)
        macs += out * channels * 9 * x.height * x.width
        # Of the convolution, of its batch norm if it has one, and of its ReLU.
        activations += (3 if sizes["batch_norm"] else 2) * out * x.height * x.width
        x = window(x, 2, 2) if last else x
    frozen_macs = macs if sizes["freeze_backbone"] else 0
    for name, features, out in dense_layers(sizes, x.channels * x.height * x.width):
        parameters += [
            Parameter(f"{name}.weight", (out, features), "dense", DENSE_INITIAL),
            Parameter(f"{name}.bias", (out,), "bias", "constant:0"),
        ]
        macs += out * features
    label = Input("label", (), "int32", high=sizes["classes"])
    stored = 0 if sizes["freeze_backbone"] else activations
    stages = tuple(f"stage{number}" for number in range(1, len(STAGES) + 1))
    # Where no batch statistics normalise, activations are as large as the image.
    normalised = sizes["batch_norm"] and not sizes["freeze_backbone"]
    # A block that is computed again would draw another mask.
    inner_dropout = sizes.get("conv_dropout", False)
    require(
        not (inner_dropout and sizes["freeze_backbone"]), "a frozen body is not trained, so conv_dropout has no effect"
    )
    return Network(
        tuple(parameters),
        (image, label),
        macs,
        stored,
        frozen_macs,
        predictions=classification.predictions(sizes["classes"]),
        adversarial=Adversarial(
            scale=8.0 if normalised else 64.0, factors={"*.gamma": 8.0 if normalised else 1.0, "dense*.weight": 16.0}
        ),
        probes=stages,
        dropout=bool(sizes["dense"] or inner_dropout),
        blocks=() if sizes["freeze_backbone"] or inner_dropout else stages,
        likelihood=True,
    )


def convolutions(sizes: dict[str, Any]) -> Iterator[tuple[str, int, int, int, bool]]:
    """Yield (stage, number, channels in, channels out, whether a pool follows) of each of the thirteen convolutions."""
    channels = sizes["channels"]
    for stage, (count, factor) in enumerate(STAGES, 1):
        for number in range(1, count + 1):
            yield f"stage{stage}", number, channels, sizes["width"] * factor, number == count
            channels = sizes["width"] * factor


def dense_layers(sizes: dict[str, Any], features: int) -> Iterator[tuple[str, int, int]]:
    """Yield (name, features in, out) of the dense layers after `features` flattened values."""
    hidden = (("dense1", sizes["dense"]), ("dense2", sizes["dense"])) if sizes["dense"] else ()
    for name, out in (*hidden, ("head", sizes["classes"])):
        yield name, features, out
        features = out


def _convolution(stage: str, number: int, channels: int, out: int, normed: bool) -> tuple[Parameter, ...]:
    name = f"{stage}.conv{number}"
    weight = Parameter(f"{name}.weight", (out, channels, 3, 3), "conv", "kaiming_normal_fan_out")
    if normed:
        return (weight, *batch_norm(f"{stage}.bn{number}", out))
    return weight, Parameter(f"{name}.bias", (out,), "bias", "constant:0")
