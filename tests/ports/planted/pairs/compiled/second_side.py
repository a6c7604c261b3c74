"""The same encoder, compiled."""

from __future__ import annotations

from pathlib import Path

import torch
from torch import nn

WIDTH, HEADS, HIDDEN, LAYERS = 24, 3, 40, 2


def build(activation="gelu", norm_first=True, epsilon=1e-5, compiled=True):
    layer = nn.TransformerEncoderLayer(
        WIDTH, HEADS, HIDDEN, activation=activation, batch_first=True, norm_first=norm_first, layer_norm_eps=epsilon
    )
    model = nn.TransformerEncoder(layer, LAYERS, norm=nn.LayerNorm(WIDTH), enable_nested_tensor=False)
    model.load_state_dict(torch.load(Path(__file__).parent / "weights.pt", weights_only=True))
    return torch.compile(model, backend="aot_eager") if compiled else model
