"""The network in MXNet: Gluon blocks whose prefixes make the parameters' names the canonical ones."""

from __future__ import annotations

from typing import Any

from mxnet import gluon
from mxnet.gluon import HybridBlock, nn

from steelyard_worker.frameworks.mxnet import layers


class Network(HybridBlock):
    """Images (N, C, H, W) -> logits (N, classes)."""

    def __init__(self, sizes: dict[str, Any]) -> None:
        super().__init__(prefix="")
        pixels = sizes["channels"] * sizes["image"] ** 2
        with self.name_scope():
            self.first = nn.Dense(sizes["hidden"], in_units=pixels, prefix="first.")
            self.head = nn.Dense(sizes["classes"], in_units=sizes["hidden"], prefix="head.")

    def hybrid_forward(self, F: Any, image: Any) -> Any:
        return self.head(F.Activation(self.first(F.flatten(image)), act_type="relu"))


# What the network takes, what the loss takes besides the outputs, and what the outputs are called.
INPUTS, TARGETS, OUTPUTS = ("image",), ("label",), ("logits",)


def build(sizes: dict[str, Any]) -> HybridBlock:
    """Return the network, its parameters without values yet."""
    return Network(sizes)


def variables(network: HybridBlock) -> dict[str, gluon.Parameter]:
    """Map canonical names to parameters."""
    return dict(network.collect_params().items())


def loss() -> HybridBlock:
    """Mean softmax cross-entropy from logits."""
    return layers.CrossEntropy()
