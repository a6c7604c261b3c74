"""ResNet-18 in MXNet: Gluon blocks whose prefixes give the parameters their canonical names."""

from __future__ import annotations

from typing import Any

from mxnet import gluon
from mxnet.gluon import HybridBlock

from steelyard_worker.frameworks.mxnet import layers
from steelyard_worker.frameworks.mxnet.residual import Classifier, batch_norm, conv, shortcut, stem


class Block(HybridBlock):
    """Basic block: two 3x3 convolutions, and a projected shortcut where the shape changes."""

    def __init__(self, channels: int, out: int, stride: int, prefix: str) -> None:
        super().__init__(prefix=prefix)
        with self.name_scope():
            self.conv1 = conv(channels, out, 3, stride, "conv1.")
            self.bn1 = batch_norm(out, "bn1.")
            self.conv2 = conv(out, out, 3, 1, "conv2.")
            self.bn2 = batch_norm(out, "bn2.")
            self.shortcut = shortcut(channels, out, stride)

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        # `Activation` has a oneDNN kernel, as in Gluon's model zoo; `F.relu` has none and makes a step 6 % longer.
        y = F.Activation(self.bn1(self.conv1(x)), act_type="relu")
        return F.Activation(self.bn2(self.conv2(y)) + self.shortcut(x), act_type="relu")


INPUTS, TARGETS, OUTPUTS = ("image",), ("label",), ("logits",)


def build(sizes: dict[str, Any]) -> HybridBlock:
    """Return the network; its weights are loaded later."""
    channels, blocks = sizes["width"], []
    for stage in range(4):
        out = sizes["width"] * 2**stage
        for block in range(2):
            stride = 2 if stage and not block else 1
            blocks.append(Block(channels, out, stride, f"stage{stage + 1}.block{block}."))
            channels = out
    first = stem(sizes["channels"], sizes["width"], sizes["stem"])
    return Classifier(first, blocks, channels, sizes["classes"])


def variables(network: HybridBlock) -> dict[str, gluon.Parameter]:
    """Map canonical names to parameters and statistics."""
    return dict(network.collect_params())


def loss() -> HybridBlock:
    """Mean softmax cross-entropy from logits."""
    return layers.CrossEntropy()
