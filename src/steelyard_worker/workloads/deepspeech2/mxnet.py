"""Deep Speech 2 in MXNet: Gluon blocks whose prefixes give the parameters their canonical names; sequences are time-major."""

from __future__ import annotations

from typing import Any

from mxnet import gluon
from mxnet.gluon import HybridBlock, nn

from steelyard_worker.frameworks.mxnet.ctc import Ctc
from steelyard_worker.frameworks.mxnet.recurrent import Bidirectional, named_by_prefix, unrolled
from steelyard_worker.probes import probe


def batch_norm(channels: int, prefix: str) -> nn.BatchNorm:
    """Return a batch norm; Gluon's momentum is the weight of the old statistic (P-01)."""
    return nn.BatchNorm(
        axis=1, momentum=0.9, epsilon=1e-5, center=True, scale=True, in_channels=channels, prefix=prefix
    )


def output_lengths(F: Any, frames: Any) -> Any:
    """Return the number of output frames for a number of input frames, as float32 for MXNet's sequence operators."""
    return F.floor((F.cast(frames, "float32") + 1) / 2)


class Convolution(HybridBlock):
    """Convolution over (frequency, time), batch norm over all positions, clip; frames after the end are set to zero."""

    def __init__(
        self,
        channels: int,
        out: int,
        kernel: tuple[int, int],
        stride: tuple[int, int],
        padding: tuple[int, int],
        prefix: str,
    ) -> None:
        super().__init__(prefix=prefix)
        with self.name_scope():
            self.conv = nn.Conv2D(out, kernel, stride, padding, use_bias=False, in_channels=channels, prefix="conv.")
            self.bn = batch_norm(out, "bn.")

    def hybrid_forward(self, F: Any, x: Any, inside: Any) -> Any:
        return F.broadcast_mul(F.clip(self.bn(self.conv(x)), 0.0, 20.0), inside)


class SequenceNorm(HybridBlock):
    """Batch norm over the features of (T, N, width), across all positions."""

    def __init__(self, width: int, prefix: str) -> None:
        super().__init__(prefix="")
        self.bn = batch_norm(width, prefix)

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        return F.reshape_like(self.bn(F.reshape(x, shape=(-3, 0))), x)


class Recurrent(HybridBlock):
    """Batch norm over features, except in the first layer, then an LSTM whose two directions are summed."""

    def __init__(self, name: str, width: int, hidden: int, length: int, normalise: bool) -> None:
        super().__init__(prefix="")
        self.bn = SequenceNorm(width, f"{name}.bn.") if normalise else nn.HybridLambda("identity")
        self.lstm = Bidirectional(name, width, hidden, length)

    def hybrid_forward(self, F: Any, x: Any, lengths: Any) -> Any:
        onward, backward = self.lstm(self.bn(x), lengths)
        return onward + backward


class Network(HybridBlock):
    """Spectrograms (N, 1, F, T) and their lengths (N,) -> logits (N, T', classes)."""

    def __init__(self, sizes: dict[str, Any]) -> None:
        super().__init__(prefix="")
        channels, hidden, steps = sizes["channels"], sizes["hidden"], (sizes["frames"] + 1) // 2
        self.conv1 = Convolution(1, channels, (41, 11), (2, 2), (20, 5), "conv1.")
        self.conv2 = Convolution(channels, channels, (21, 11), (2, 1), (10, 5), "conv2.")
        self.layers = []
        width = channels * -(-sizes["bins"] // 4)
        for layer in range(1, sizes["layers"] + 1):
            self.layers.append(Recurrent(f"rnn{layer}", width, hidden, steps, normalise=layer > 1))
            self.register_child(self.layers[-1])
            width = hidden
        self.bn = SequenceNorm(hidden, "head.bn.")
        self.dense = nn.Dense(sizes["classes"], use_bias=False, flatten=False, in_units=hidden, prefix="head.dense.")

    @property
    def unrolls(self) -> bool:
        """Whether a graph of it has loops of fixed length."""
        return bool(unrolled(self))

    def fit(self, spectrogram: tuple[int, ...], *_: tuple[int, ...]) -> None:
        """Unroll loops over the frames of spectrograms of this shape."""
        for lstm in unrolled(self):
            lstm.length = (spectrogram[3] + 1) // 2

    def hybrid_forward(self, F: Any, spectrogram: Any, frames: Any) -> Any:
        lengths = output_lengths(F, frames)
        every_other = F.slice(spectrogram, begin=(0, 0, 0, 0), end=(1, 1, 1, None), step=(1, 1, 1, 2))
        places = F.reshape(F.contrib.arange_like(every_other, axis=3), shape=(1, 1, 1, -1))
        inside = F.broadcast_lesser(places, F.reshape(lengths, shape=(-1, 1, 1, 1)))
        x = self.conv2(self.conv1(spectrogram, inside), inside)
        x = F.reshape(F.transpose(x, axes=(3, 0, 1, 2)), shape=(0, 0, -3))  # features channel-major (P-18)
        for number, layer in enumerate(self.layers, 1):
            x = probe(f"rnn{number}", layer(x, lengths))
        return F.transpose(self.dense(self.bn(x)), axes=(1, 0, 2))


class Loss(HybridBlock):
    """CTC, blank 0, summed over the batch and divided by its size; a transcript that cannot be aligned counts as 0."""

    def __init__(self) -> None:
        super().__init__(prefix="")
        self.ctc = Ctc()

    def hybrid_forward(self, F: Any, logits: Any, frames: Any, transcript: Any, letters: Any) -> Any:
        logits = F.transpose(logits, axes=(1, 0, 2))
        return F.mean(self.ctc(logits, output_lengths(F, frames), transcript, letters))


INPUTS, TARGETS, OUTPUTS = ("spectrogram", "frames"), ("frames", "transcript", "transcript_length"), ("logits",)


def build(sizes: dict[str, Any]) -> HybridBlock:
    """Return the network; its weights are loaded later."""
    return Network(sizes)


def variables(network: HybridBlock) -> dict[str, gluon.Parameter]:
    """Map canonical names to parameters and statistics."""
    return named_by_prefix(network)


def loss() -> HybridBlock:
    """CTC, summed over the batch and divided by its size."""
    return Loss()
