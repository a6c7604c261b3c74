"""A PyTorch encoder, small, with random weights, which it saves for the other side."""

from __future__ import annotations

from pathlib import Path

import torch
from torch import nn

WIDTH, HEADS, HIDDEN, LAYERS = 24, 3, 40, 2


def build(**changed):
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(WIDTH, HEADS, HIDDEN, activation="gelu", batch_first=True, norm_first=True)
    model = nn.TransformerEncoder(layer, LAYERS, norm=nn.LayerNorm(WIDTH), enable_nested_tensor=False)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter += 0.1 * torch.randn_like(parameter)
    torch.save(model.state_dict(), Path(__file__).parent / "weights.pt")
    return model
