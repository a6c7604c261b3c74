"""LSTM sentiment in PyTorch: `nn.LSTM` over reviews, batch first."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from steelyard_worker.frameworks.pytorch.recurrent import Lstm
from steelyard_worker.probes import probe


class Network(nn.Module):
    """Word indices (N, T) -> logits (N, classes)."""

    def __init__(self, sizes: dict[str, Any]) -> None:
        super().__init__()
        self.embedding = nn.Embedding(sizes["vocabulary"], sizes["embedding"])
        self.lstm = Lstm(
            sizes["embedding"],
            sizes["hidden"],
            sizes["layers"],
            batch_first=True,
            bidirectional=sizes["bidirectional"],
        )
        self.both_ends = sizes["readout"] == "first+last"
        features = sizes["hidden"] * (2 if sizes["bidirectional"] else 1) * (2 if self.both_ends else 1)
        self.head = nn.Linear(features, sizes["classes"])
        self.embedding.weight.requires_grad_(sizes["train_embedding"])

    def forward(self, tokens: Tensor) -> dict[str, Tensor]:
        steps = self.lstm(self.embedding(tokens))
        read = torch.cat((steps[:, 0], steps[:, -1]), dim=1) if self.both_ends else steps[:, -1]
        return {"logits": self.head(probe("readout", read))}


INPUTS = ("tokens",)


def build(sizes: dict[str, Any]) -> nn.Module:
    """Return the network; its weights are loaded later."""
    return Network(sizes)


def variables(network: nn.Module) -> dict[str, Tensor]:
    """Map canonical names to parameters."""
    named = dict(network.named_parameters())
    found = {name: tensor for name, tensor in named.items() if not name.startswith("lstm.")}
    for name, tensor in named.items():
        kind = {"weight_ih": "w_ih", "weight_hh": "w_hh", "bias_ih": "b"}.get(name.split("_l")[0].removeprefix("lstm."))
        if kind:
            layer, _, reverse = name.rsplit("_l", 1)[1].partition("_")
            found[f"lstm.layer{layer}.{'backward' if reverse else 'forward'}.{kind}"] = tensor
    return found


def loss(outputs: dict[str, Tensor], batch: dict[str, Tensor]) -> Tensor:
    """Mean softmax cross-entropy from logits."""
    return F.cross_entropy(outputs["logits"], batch["label"])
