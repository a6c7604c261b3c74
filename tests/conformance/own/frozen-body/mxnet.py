"""The network in MXNet; nothing is frozen here, because network.py says what is."""

from __future__ import annotations

from typing import Any

from mxnet import gluon
from mxnet.gluon import HybridBlock, nn

from steelyard_worker.frameworks.mxnet import layers


class Network(HybridBlock):
    """Images (N, C, H, W) -> logits (N, classes)."""

    def __init__(self, sizes: dict[str, Any]) -> None:
        super().__init__(prefix="")
        channels = sizes["channels"]
        with self.name_scope():
            self.first = nn.Conv2D(channels, 3, 1, 1, use_bias=False, in_channels=3, prefix="first.")
            self.second = nn.Conv2D(channels, 3, 1, 1, use_bias=False, in_channels=channels, prefix="second.")
            self.head = nn.Dense(sizes["classes"], in_units=channels, prefix="head.")

    def hybrid_forward(self, F: Any, image: Any) -> Any:
        x = F.Activation(self.second(F.Activation(self.first(image), act_type="relu")), act_type="relu")
        return self.head(F.mean(x, axis=(2, 3)))


INPUTS, TARGETS, OUTPUTS = ("image",), ("label",), ("logits",)


def build(sizes: dict[str, Any]) -> HybridBlock:
    """Return the network; its weights are loaded later."""
    return Network(sizes)


def variables(network: HybridBlock) -> dict[str, gluon.Parameter]:
    """Map canonical names to parameters."""
    return dict(network.collect_params().items())


def loss() -> HybridBlock:
    """Mean softmax cross-entropy from logits."""
    return layers.CrossEntropy()
