"""ResNet-18 in MXNet: Gluon blocks whose prefixes make the parameters' names the canonical ones."""

from __future__ import annotations

from typing import Any

from mxnet import gluon
from mxnet.gluon import HybridBlock, nn

from steelyard_worker.frameworks.mxnet import layers


def batch_norm(channels: int, prefix: str) -> nn.BatchNorm:
    """Return a batch norm; Gluon's momentum is the weight of the old statistic (P-01)."""
    return nn.BatchNorm(axis=1, momentum=0.9, epsilon=1e-5, center=True, scale=True, in_channels=channels, prefix=prefix)


class Block(HybridBlock):
    """Basic block: two 3x3 convolutions, and a projected shortcut where the shape changes."""

    def __init__(self, channels: int, out: int, stride: int, prefix: str) -> None:
        super().__init__(prefix=prefix)
        with self.name_scope():
            self.conv1 = nn.Conv2D(out, 3, stride, 1, use_bias=False, in_channels=channels, prefix="conv1.")
            self.bn1 = batch_norm(out, "bn1.")
            self.conv2 = nn.Conv2D(out, 3, 1, 1, use_bias=False, in_channels=out, prefix="conv2.")
            self.bn2 = batch_norm(out, "bn2.")
            self.shortcut = nn.HybridSequential(prefix="shortcut.")
            if stride != 1 or channels != out:
                with self.shortcut.name_scope():
                    self.shortcut.add(nn.Conv2D(out, 1, stride, 0, use_bias=False, in_channels=channels, prefix="conv."))
                    self.shortcut.add(batch_norm(out, "bn."))

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        # `Activation` has a oneDNN kernel, as in Gluon's model zoo; `F.relu` has none and costs 6 % of a step.
        y = F.Activation(self.bn1(self.conv1(x)), act_type="relu")
        return F.Activation(self.bn2(self.conv2(y)) + self.shortcut(x), act_type="relu")


class Network(HybridBlock):
    """The whole network: images (N, C, H, W) -> logits (N, classes)."""

    def __init__(self, sizes: dict[str, Any]) -> None:
        super().__init__(prefix="")
        width, stem = sizes["width"], sizes["stem"]
        large = stem == "imagenet"
        self.stem = nn.HybridSequential(prefix="stem.")
        with self.stem.name_scope():
            kernel, stride, padding = (7, 2, 3) if large else (3, 1, 1)
            self.stem.add(
                nn.Conv2D(width, kernel, stride, padding, use_bias=False, in_channels=sizes["channels"], prefix="conv."),
                batch_norm(width, "bn."),
                nn.Activation("relu"),
            )
            if stem != "cifar":
                self.stem.add(nn.MaxPool2D(3, 2, 1) if large else nn.MaxPool2D(2, 2, 0))
        self.stages = nn.HybridSequential(prefix="")
        channels = width
        for stage in range(1, 5):
            out = width * 2 ** (stage - 1)
            for block in range(2):
                stride = 2 if stage > 1 and block == 0 else 1
                self.stages.add(Block(channels, out, stride, f"stage{stage}.block{block}."))
                channels = out
        self.pool = nn.GlobalAvgPool2D()
        self.head = nn.Dense(sizes["classes"], use_bias=True, flatten=True, in_units=channels, prefix="head.")

    def hybrid_forward(self, F: Any, image: Any) -> Any:
        return self.head(self.pool(self.stages(self.stem(image))))


INPUTS, TARGETS, OUTPUTS = ("image",), ("label",), ("logits",)


def build(sizes: dict[str, Any]) -> HybridBlock:
    """Return the network, its parameters without values yet."""
    return Network(sizes)


def variables(network: HybridBlock) -> dict[str, gluon.Parameter]:
    """Map canonical names to parameters and statistics."""
    return dict(network.collect_params())


def loss() -> HybridBlock:
    """Mean softmax cross-entropy from logits."""
    return layers.CrossEntropy()
