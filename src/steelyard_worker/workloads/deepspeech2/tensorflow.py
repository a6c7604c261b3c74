"""Deep Speech 2 in TensorFlow: functions over variables with the canonical names; images NHWC, sequences time-major."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from steelyard_worker.frameworks.tensorflow.ctc import ctc
from steelyard_worker.frameworks.tensorflow.layers import BatchNorm, Convolution, Variables
from steelyard_worker.frameworks.tensorflow.recurrent import Bidirectional
from steelyard_worker.frameworks.tensorflow.shapes import extent
from steelyard_worker.probes import probe


class Clipped:
    """Convolution over (frequency, time), batch norm over all positions, clip; frames after the end are set to zero."""

    def __init__(
        self,
        variables: Variables,
        name: str,
        channels: int,
        out: int,
        kernel: tuple[int, int],
        stride: tuple[int, int],
        padding: tuple[int, int],
    ) -> None:
        self.conv = Convolution(variables, f"{name}.conv", channels, out, kernel, stride, padding)
        self.bn = BatchNorm(variables, f"{name}.bn", out, epsilon=1e-5, momentum=0.1)
        self.name = name

    def __call__(self, x: tf.Tensor, lengths: tf.Tensor, training: bool) -> tf.Tensor:
        x = tf.minimum(tf.nn.relu(self.bn(self.conv(x), training)), 20.0)
        return probe(self.name, x * tf.sequence_mask(lengths, extent(x, 2), x.dtype)[:, None, :, None])


class SequenceNorm:
    """Batch norm over the features of (T, N, width), across all positions."""

    def __init__(self, variables: Variables, name: str, width: int) -> None:
        self.bn = BatchNorm(variables, name, width, epsilon=1e-5, momentum=0.1)

    def __call__(self, x: tf.Tensor, training: bool) -> tf.Tensor:
        return self.bn(x[None], training)[0]


class Recurrent:
    """Batch norm over features, except in the first layer, then an LSTM whose two directions are summed."""

    def __init__(self, variables: Variables, name: str, width: int, hidden: int, normed: bool) -> None:
        self.bn = SequenceNorm(variables, f"{name}.bn", width) if normed else None
        self.lstm, self.name = Bidirectional(variables, name, width, hidden), name

    def __call__(self, x: tf.Tensor, lengths: tf.Tensor, training: bool) -> tf.Tensor:
        x = self.bn(x, training) if self.bn else x
        return probe(self.name, tf.add_n(self.lstm(x, lengths)))


class Network:
    """Spectrograms (N, F, T, 1) and their lengths (N,) -> logits (N, T', classes)."""

    def __init__(self, sizes: dict[str, Any], variables: Variables) -> None:
        channels, hidden = sizes["channels"], sizes["hidden"]
        self.conv1 = Clipped(variables, "conv1", 1, channels, (41, 11), (2, 2), (20, 5))
        self.conv2 = Clipped(variables, "conv2", channels, channels, (21, 11), (2, 1), (10, 5))
        widths = [channels * -(-sizes["bins"] // 4)] + [hidden] * (sizes["layers"] - 1)
        self.layers = [
            variables.block(Recurrent(variables, f"rnn{layer}", width, hidden, normed=layer > 1))
            for layer, width in enumerate(widths, 1)
        ]
        self.bn = SequenceNorm(variables, "head.bn", hidden)
        self.dense = variables.new("head.dense.weight", hidden, sizes["classes"])

    def __call__(self, spectrogram: tf.Tensor, frames: tf.Tensor, training: bool) -> dict[str, tf.Tensor]:
        lengths = (frames + 1) // 2
        x = self.conv2(self.conv1(spectrogram, lengths, training), lengths, training)
        # Channels before bins, so that features are channel-major (P-18).
        x = tf.reshape(tf.transpose(x, (2, 0, 3, 1)), (extent(x, 2), x.shape[0], x.shape[3] * x.shape[1]))
        for layer in self.layers:
            x = layer(x, lengths, training)
        return {"logits": tf.transpose(tf.tensordot(self.bn(x, training), self.dense, 1), (1, 0, 2))}


INPUTS = ("spectrogram", "frames")


def build(sizes: dict[str, Any], variables: Variables) -> Network:
    """Return the network; it creates its variables in `variables`."""
    return Network(sizes, variables)


def loss(outputs: dict[str, tf.Tensor], batch: dict[str, tf.Tensor]) -> tf.Tensor:
    """CTC, blank 0, summed over the batch and divided by its size; a transcript that cannot be aligned counts as 0."""
    logits, lengths = tf.transpose(outputs["logits"], (1, 0, 2)), (batch["frames"] + 1) // 2
    return tf.reduce_mean(ctc(logits, lengths, batch["transcript"], batch["transcript_length"]))
