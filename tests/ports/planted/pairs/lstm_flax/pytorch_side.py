"""Two layers of torch.nn.LSTM and a dense layer, with random weights, which it saves for the other side."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from torch import nn

WIDTH, HIDDEN, CLASSES = 5, 8, 3


class Network(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.LSTM(WIDTH, HIDDEN, batch_first=True)
        self.second = nn.LSTM(HIDDEN, HIDDEN, batch_first=True)
        self.head = nn.Linear(HIDDEN, CLASSES)

    def forward(self, x):
        x, _ = self.first(x)
        x, _ = self.second(x)
        return self.head(x)


def build():
    torch.manual_seed(0)
    model = Network()
    np.savez(Path(__file__).parent / "weights.npz", **{k: v.numpy() for k, v in model.state_dict().items()})
    return model
