"""Deep Speech 2 in MindSpore: cells with the canonical names; sequences are time-major."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

from mindspore import Parameter, Tensor, nn, ops

from steelyard_worker.frameworks.mindspore.ctc import Ctc
from steelyard_worker.frameworks.mindspore.recurrent import Bidirectional, named_by_cell_and_direction
from steelyard_worker.probes import probe


class Convolution(nn.Cell):
    """Convolution over (frequency, time), batch norm over all positions, clip; frames after the end are set to zero.

    `padding` is (top, bottom, left, right); the default `pad_mode` would be 'same' (P-08). `momentum` is the weight of the old
    statistic here (P-01).
    """

    def __init__(
        self,
        channels: int,
        out: int,
        kernel: tuple[int, int],
        stride: tuple[int, int],
        padding: tuple[int, int, int, int],
    ) -> None:
        super().__init__()
        self.conv = nn.Conv2d(channels, out, kernel, stride, pad_mode="pad", padding=padding, has_bias=False)
        self.bn = nn.BatchNorm2d(out, eps=1e-5, momentum=0.9)

    def construct(self, x: Tensor, lengths: Tensor) -> Tensor:
        x = ops.clamp(self.bn(self.conv(x)), 0.0, 20.0)
        inside = ops.arange(x.shape[3]).reshape((1, 1, 1, -1)) < lengths.reshape((-1, 1, 1, 1))
        return x * ops.cast(inside, x.dtype)


class SequenceNorm(nn.BatchNorm1d):
    """Batch norm over the features of (T, N, width), across all positions."""

    def construct(self, x: Tensor) -> Tensor:
        return super().construct(x.reshape((-1, x.shape[2]))).reshape(x.shape)


class Recurrent(nn.Cell):
    """Batch norm over features, except in the first layer, then an LSTM whose two directions are summed."""

    def __init__(self, width: int, hidden: int, normalise: bool) -> None:
        super().__init__()
        self.bn = SequenceNorm(width, eps=1e-5, momentum=0.9) if normalise else nn.Identity()
        self.lstm = Bidirectional(width, hidden)

    def construct(self, x: Tensor, lengths: Tensor) -> Tensor:
        onward, backward = self.lstm(self.bn(x), lengths)
        return onward + backward


class Network(nn.Cell):
    """Spectrograms (N, 1, F, T) and their lengths (N,) -> logits (N, T', classes)."""

    def __init__(self, sizes: dict[str, Any]) -> None:
        super().__init__()
        channels, hidden = sizes["channels"], sizes["hidden"]
        self.conv1 = Convolution(1, channels, (41, 11), (2, 2), (20, 20, 5, 5))
        self.conv2 = Convolution(channels, channels, (21, 11), (2, 1), (10, 10, 5, 5))
        widths = [channels * -(-sizes["bins"] // 4)] + [hidden] * (sizes["layers"] - 1)
        self.layers = nn.CellList([Recurrent(width, hidden, layer > 0) for layer, width in enumerate(widths)])
        cells = OrderedDict(
            bn=SequenceNorm(hidden, eps=1e-5, momentum=0.9), dense=nn.Dense(hidden, sizes["classes"], has_bias=False)
        )
        self.head = nn.SequentialCell(cells)

    def construct(self, spectrogram: Tensor, frames: Tensor) -> tuple[Tensor]:
        lengths = (frames + 1) // 2
        x = self.conv2(self.conv1(spectrogram, lengths), lengths)
        x = ops.transpose(x, (3, 0, 1, 2))
        x = x.reshape((x.shape[0], x.shape[1], -1))  # features channel-major (P-18)
        for number, layer in enumerate(self.layers, 1):
            x = probe(f"rnn{number}", layer(x, lengths))
        return (ops.transpose(self.head(x), (1, 0, 2)),)


class Loss(nn.Cell):
    """CTC, blank 0, summed over the batch and divided by its size; a transcript that cannot be aligned counts as 0."""

    def __init__(self) -> None:
        super().__init__()
        self.ctc = Ctc()

    def construct(self, logits: Tensor, frames: Tensor, transcript: Tensor, letters: Tensor) -> Tensor:
        # The operator's own mean would divide by the length of each transcript first (P-36).
        return ops.mean(self.ctc(ops.transpose(logits, (1, 0, 2)), (frames + 1) // 2, transcript, letters))


INPUTS, TARGETS, OUTPUTS = ("spectrogram", "frames"), ("frames", "transcript", "transcript_length"), ("logits",)


def build(sizes: dict[str, Any]) -> nn.Cell:
    """Return the network; its weights are loaded later."""
    return Network(sizes)


def variables(network: Network) -> dict[str, Parameter]:
    """Map canonical names to parameters; canonical layer numbers start at 1."""
    found = {}
    for name, parameter in named_by_cell_and_direction(network).items():
        parts = name.replace(".lstm.", ".").split(".")
        if parts[0] == "layers":
            parts[:2] = [f"rnn{int(parts[1]) + 1}"]
        found[".".join(parts)] = parameter
    return found


def loss() -> nn.Cell:
    """CTC, summed over the batch and divided by its size."""
    return Loss()
