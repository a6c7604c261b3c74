"""Sentiment classification as in PyTorch's tutorials: `nn.Embedding`, `nn.LSTM`, `nn.Linear`."""

import torch
from torch import nn
from torch.nn import functional as F

SOURCE = "written by hand from torch.nn.Embedding, LSTM and Linear: no maintained package has this network"
DIFFERS = "nn.LSTM trains a second bias in every direction"
MORE = 512


class Sentiment(nn.Module):
    """Indices (N, T) -> logits (N, classes)."""

    def __init__(self, sizes):
        super().__init__()
        both, self.ends = sizes["bidirectional"], sizes["readout"] == "first+last"
        width, hidden = sizes["embedding"], sizes["hidden"]
        self.embedding = nn.Embedding(sizes["vocabulary"], width).requires_grad_(sizes["train_embedding"])
        self.lstm = nn.LSTM(width, hidden, sizes["layers"], batch_first=True, bidirectional=both)
        self.head = nn.Linear(hidden * (1 + both) * (1 + self.ends), sizes["classes"])

    def forward(self, tokens):
        """Read the last step, or the first and the last."""
        steps, _ = self.lstm(self.embedding(tokens))
        return self.head(torch.cat((steps[:, 0], steps[:, -1]), 1) if self.ends else steps[:, -1])


def model(sizes):
    """Return the network."""
    return Sentiment(sizes)


def inputs(batch):
    """Indices and labels."""
    return {name: torch.from_numpy(batch[name]).long() for name in ("tokens", "label")}


def loss(model, batch):
    """Mean softmax cross-entropy."""
    return F.cross_entropy(model(batch["tokens"]), batch["label"])
