"""ResNet-50 in MXNet: Gluon blocks whose prefixes give the parameters their canonical names."""

from __future__ import annotations

from typing import Any

from mxnet import gluon
from mxnet.gluon import HybridBlock

from steelyard_worker.frameworks.mxnet import layers
from steelyard_worker.frameworks.mxnet.residual import Classifier, batch_norm, conv, shortcut, stem


class Block(HybridBlock):
    """Bottleneck: 1x1, 3x3 and 1x1 convolution, and a projected shortcut where the shape changes."""

    def __init__(self, channels: int, within: int, strides: tuple[int, int], frozen: bool, prefix: str) -> None:
        super().__init__(prefix=prefix)
        with self.name_scope():
            self.conv1 = conv(channels, within, 1, strides[0], "conv1.")
            self.bn1 = batch_norm(within, "bn1.", frozen)
            self.conv2 = conv(within, within, 3, strides[1], "conv2.")
            self.bn2 = batch_norm(within, "bn2.", frozen)
            self.conv3 = conv(within, 4 * within, 1, 1, "conv3.")
            self.bn3 = batch_norm(4 * within, "bn3.", frozen)
            self.shortcut = shortcut(channels, 4 * within, strides[0] * strides[1], frozen)

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        # `Activation` has a oneDNN kernel, `F.relu` has none.
        y = F.Activation(self.bn1(self.conv1(x)), act_type="relu")
        y = F.Activation(self.bn2(self.conv2(y)), act_type="relu")
        return F.Activation(self.bn3(self.conv3(y)) + self.shortcut(x), act_type="relu")


INPUTS, TARGETS, OUTPUTS = ("image",), ("label",), ("logits",)


def build(sizes: dict[str, Any]) -> HybridBlock:
    """Return the network; its weights are loaded later."""
    channels, frozen, blocks = sizes["width"], sizes["freeze_backbone"], []
    for stage, count in enumerate(sizes["blocks"]):
        within = sizes["width"] * 2**stage
        for block in range(count):
            stride = 2 if stage and not block else 1
            strides = (stride, 1) if sizes["variant"] == "v1" else (1, stride)
            blocks.append(Block(channels, within, strides, frozen, f"stage{stage + 1}.block{block}."))
            channels = 4 * within
    first = stem(sizes["channels"], sizes["width"], "imagenet", frozen)
    return Classifier(first, blocks, channels, sizes["classes"])


def variables(network: HybridBlock) -> dict[str, gluon.Parameter]:
    """Map canonical names to parameters and statistics."""
    return dict(network.collect_params())


def loss() -> HybridBlock:
    """Mean softmax cross-entropy from logits."""
    return layers.CrossEntropy()
