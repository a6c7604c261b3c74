"""Deep Speech 2 in PyTorch: `torch.nn` modules with the canonical names; sequences are time-major."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from steelyard_worker.frameworks.pytorch.recurrent import Bidirectional, named_by_module_and_direction


class Convolution(nn.Module):
    """Convolution over (frequency, time), batch norm over all positions, clip; frames after the end are set to zero."""

    def __init__(
        self, channels: int, out: int, kernel: tuple[int, int], stride: tuple[int, int], padding: tuple[int, int]
    ) -> None:
        super().__init__()
        self.conv = nn.Conv2d(channels, out, kernel, stride, padding, bias=False)
        self.bn = nn.BatchNorm2d(out, eps=1e-5, momentum=0.1)

    def forward(self, x: Tensor, lengths: Tensor) -> Tensor:
        x = F.hardtanh(self.bn(self.conv(x)), 0.0, 20.0)
        beyond = torch.arange(x.shape[3], device=x.device) >= lengths[:, None, None, None]
        return x.masked_fill(beyond, 0.0)


class Recurrent(nn.Module):
    """Batch norm over features, except in the first layer, then an LSTM whose two directions are summed."""

    def __init__(self, width: int, hidden: int, normalise: bool) -> None:
        super().__init__()
        self.bn = nn.BatchNorm1d(width, eps=1e-5, momentum=0.1) if normalise else nn.Identity()
        self.lstm = Bidirectional(width, hidden)

    def forward(self, x: Tensor, lengths: Tensor) -> Tensor:
        forward, backward = self.lstm(self.bn(x.flatten(0, 1)).view_as(x), lengths)
        return forward + backward


class Network(nn.Module):
    """Spectrograms (N, 1, F, T) and their lengths (N,) -> logits (N, T', classes)."""

    def __init__(self, sizes: dict[str, Any]) -> None:
        super().__init__()
        channels, hidden = sizes["channels"], sizes["hidden"]
        self.conv1 = Convolution(1, channels, (41, 11), (2, 2), (20, 5))
        self.conv2 = Convolution(channels, channels, (21, 11), (2, 1), (10, 5))
        width = channels * -(-sizes["bins"] // 4)
        for layer in range(1, sizes["layers"] + 1):
            self.add_module(f"rnn{layer}", Recurrent(width, hidden, normalise=layer > 1))
            width = hidden
        self.head = nn.Sequential()
        self.head.add_module("bn", nn.BatchNorm1d(hidden, eps=1e-5, momentum=0.1))
        self.head.add_module("dense", nn.Linear(hidden, sizes["classes"], bias=False))
        self.layers = sizes["layers"]

    def forward(self, spectrogram: Tensor, frames: Tensor) -> dict[str, Tensor]:
        lengths = (frames + 1) // 2
        x = self.conv2(self.conv1(spectrogram, lengths), lengths)
        x = x.permute(3, 0, 1, 2).flatten(2)  # (T', N, channels * bins), channel-major (P-18)
        for layer in range(1, self.layers + 1):
            x = self.get_submodule(f"rnn{layer}")(x, lengths)
        logits = self.head(x.flatten(0, 1)).unflatten(0, x.shape[:2])
        return {"logits": logits.transpose(0, 1)}


INPUTS = ("spectrogram", "frames")


def build(sizes: dict[str, Any]) -> nn.Module:
    """Return the network; its weights are loaded later."""
    return Network(sizes)


def variables(network: nn.Module) -> dict[str, Tensor]:
    """Map canonical names to parameters and buffers."""
    return {name.replace(".lstm.", "."): tensor for name, tensor in named_by_module_and_direction(network).items()}


def loss(outputs: dict[str, Tensor], batch: dict[str, Tensor]) -> Tensor:
    """CTC, blank 0, summed over the batch and divided by its size; a transcript that cannot be aligned counts as 0."""
    scores = F.log_softmax(outputs["logits"], dim=2).transpose(0, 1)
    lengths = (batch["frames"] + 1) // 2
    # reduction="mean" would divide by the length of each transcript first (P-36)
    each = F.ctc_loss(
        scores, batch["transcript"], lengths, batch["transcript_length"], blank=0, reduction="none", zero_infinity=True
    )
    return each.sum() / len(each)
