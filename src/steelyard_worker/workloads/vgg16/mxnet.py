"""VGG-16 in MXNet: Gluon blocks whose prefixes give the parameters their canonical names."""

from __future__ import annotations

from typing import Any

from mxnet import gluon
from mxnet.gluon import HybridBlock, nn

from steelyard_worker import dropout
from steelyard_worker.frameworks.mxnet import layers
from steelyard_worker.frameworks.mxnet.residual import batch_norm

STAGES = ((2, 1), (2, 2), (3, 4), (3, 8), (3, 8))


def stage(number: int, channels: int, count: int, sizes: dict[str, Any]) -> nn.HybridSequential:
    """Return `count` convolutions with their batch norms, ReLUs and dropout, then a 2x2 max pool."""
    out, normed = sizes["width"] * STAGES[number - 1][1], sizes["batch_norm"]
    found = nn.HybridSequential(prefix=f"stage{number}.")
    with found.name_scope():
        for place in range(1, count + 1):
            found.add(nn.Conv2D(out, 3, 1, 1, use_bias=not normed, in_channels=channels, prefix=f"conv{place}."))
            if normed:
                found.add(batch_norm(out, f"bn{place}.", sizes["freeze_backbone"]))
            found.add(nn.Activation("relu"))
            if sizes.get("conv_dropout") and (rate := dropout.after_convolution(number, place, count)):
                found.add(layers.dropout(rate))
            channels = out
        found.add(nn.MaxPool2D(2, 2, 0))
    return found


def build(sizes: dict[str, Any]) -> HybridBlock:
    """Return the network, whose weights are loaded later: images (N, C, H, W) -> logits (N, classes)."""
    network, channels, extent = nn.HybridSequential(prefix=""), sizes["channels"], sizes["image"]
    for number, (count, factor) in enumerate(STAGES, 1):
        network.add(stage(number, channels, count, sizes))
        channels, extent = sizes["width"] * factor, extent // 2
    features = channels * extent * extent
    if sizes.get("conv_dropout"):
        network.add(nn.Flatten(), layers.dropout(dropout.OF_FEATURES))
    for name in ("dense1", "dense2") if sizes["dense"] else ():
        network.add(nn.Dense(sizes["dense"], "relu", in_units=features, prefix=f"{name}."), layers.dropout(0.5))
        features = sizes["dense"]
    network.add(nn.Dense(sizes["classes"], in_units=features, prefix="head."))
    return network


INPUTS, TARGETS, OUTPUTS = ("image",), ("label",), ("logits",)


def variables(network: HybridBlock) -> dict[str, gluon.Parameter]:
    """Map canonical names to parameters and statistics."""
    return dict(network.collect_params())


def loss() -> HybridBlock:
    """Mean softmax cross-entropy from logits."""
    return layers.CrossEntropy()
