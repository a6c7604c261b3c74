"""Tensors with given gradients in MXNet."""

from __future__ import annotations

from typing import Any

from mxnet import gluon
from mxnet.gluon import HybridBlock, nn


class Network(HybridBlock):
    """Gradients of all tensors, (1, ...) each -> the loss (1,)."""

    def __init__(self) -> None:
        super().__init__(prefix="")
        with self.name_scope():
            self.kernel = self.params.get("kernel.weight", shape=(6, 8))
            self.offset = self.params.get("kernel.bias", shape=(12,))
            self.scale = self.params.get("norm.gamma", shape=(10,))
            self.shift = self.params.get("norm.beta", shape=(10,))
            self.frozen = self.params.get("fixed.weight", shape=(5,))
            self.table = nn.Embedding(9, 4, prefix="table.")

    def hybrid_forward(
        self,
        F: Any,
        weight: Any,
        bias: Any,
        gamma: Any,
        beta: Any,
        rows: Any,
        table: Any,
        fixed: Any,
        *,
        kernel: Any,
        offset: Any,
        scale: Any,
        shift: Any,
        frozen: Any,
    ) -> Any:
        pairs = (kernel, weight), (offset, bias), (scale, gamma), (shift, beta), (frozen, fixed)
        products = [F.sum(F.broadcast_mul(F.expand_dims(own, axis=0), given)) for own, given in pairs]
        return F.add_n(*products, F.sum(self.table(rows) * table))


class Loss(HybridBlock):
    """The sum."""

    def hybrid_forward(self, F: Any, total: Any) -> Any:
        return F.mean(total)


# Inputs of the network, inputs of the loss in addition to the outputs, and names of the outputs.
INPUTS, TARGETS, OUTPUTS = ("weight", "bias", "gamma", "beta", "rows", "table", "fixed"), (), ("total",)


def build(sizes: dict[str, Any]) -> HybridBlock:
    """Return the network; its weights are loaded later."""
    del sizes
    return Network()


def variables(network: HybridBlock) -> dict[str, gluon.Parameter]:
    """Map canonical names to parameters."""
    return dict(network.collect_params().items())


def loss() -> HybridBlock:
    """The sum."""
    return Loss()
