"""LSTM sentiment in MXNet: Gluon's LSTM over time-major sequences."""

from __future__ import annotations

from typing import Any

from mxnet import gluon
from mxnet.gluon import HybridBlock, nn

from steelyard_worker.frameworks.mxnet import layers
from steelyard_worker.frameworks.mxnet.recurrent import Lstm
from steelyard_worker.probes import probe

KINDS = {"i2h_weight": "w_ih", "h2h_weight": "w_hh", "i2h_bias": "b"}


class Network(HybridBlock):
    """Word indices (N, T) -> logits (N, classes)."""

    def __init__(self, sizes: dict[str, Any]) -> None:
        super().__init__(prefix="")
        self.embedding = nn.Embedding(sizes["vocabulary"], sizes["embedding"], sparse_grad=False, prefix="embedding.")
        self.lstm = Lstm(
            "lstm", sizes["embedding"], sizes["hidden"], sizes["length"], sizes["layers"], sizes["bidirectional"]
        )
        self.both_ends = sizes["readout"] == "first+last"
        features = sizes["hidden"] * (2 if sizes["bidirectional"] else 1) * (2 if self.both_ends else 1)
        self.head = nn.Dense(sizes["classes"], use_bias=True, in_units=features, prefix="head.")

    def hybrid_forward(self, F: Any, tokens: Any) -> Any:
        # The fused operator needs time first; transposing the indices is cheaper than transposing the vectors (P-26).
        steps = self.lstm(self.embedding(F.transpose(tokens, axes=(1, 0))))
        last = F.slice_axis(steps, axis=0, begin=-1, end=None)
        read = F.concat(F.slice_axis(steps, axis=0, begin=0, end=1), last, dim=2) if self.both_ends else last
        return self.head(probe("readout", F.squeeze(read, axis=0)))


INPUTS, TARGETS, OUTPUTS = ("tokens",), ("label",), ("logits",)


def build(sizes: dict[str, Any]) -> HybridBlock:
    """Return the network; its weights are loaded later."""
    return Network(sizes)


def variables(network: HybridBlock) -> dict[str, gluon.Parameter]:
    """Map canonical names to parameters."""
    found = {}
    for name, parameter in network.collect_params().items():
        if not name.startswith("lstm."):
            found[name] = parameter
            continue
        place, kind = name.removeprefix("lstm.").split("_", 1)
        if kind in KINDS:
            found[f"lstm.layer{place[1:]}.{'backward' if place[0] == 'r' else 'forward'}.{KINDS[kind]}"] = parameter
    return found


def loss() -> HybridBlock:
    """Mean softmax cross-entropy from logits."""
    return layers.CrossEntropy()
