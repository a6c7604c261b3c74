"""Tacotron 2 in TensorFlow: the decoder's `tf.while_loop` computes only what depends on the previous frame."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import tensorflow as tf

from steelyard_worker.frameworks.tensorflow.convolution import convolve
from steelyard_worker.frameworks.tensorflow.layers import BatchNorm, Dense, Variables
from steelyard_worker.frameworks.tensorflow.recurrent import Bidirectional, lstm_cell
from steelyard_worker.frameworks.tensorflow.shapes import extent
from steelyard_worker.probes import probe

if TYPE_CHECKING:
    from collections.abc import Callable

    from steelyard_worker.frameworks.tensorflow.recurrence import Affine, Tensors


class Convolution:
    """Convolution of width 5, batch norm: (N, 1, T, channels) -> (N, 1, T, out)."""

    def __init__(self, variables: Variables, part: str, number: int, channels: int, out: int) -> None:
        self._weight = variables.new(f"{part}.conv{number}.weight", 5, channels, out)
        self._norm = BatchNorm(variables, f"{part}.bn{number}", out, epsilon=1e-5, momentum=0.1)
        self._formulation, self._name = variables.convolution, f"{part}.bn{number}"

    def __call__(self, x: tf.Tensor, training: bool) -> tf.Tensor:
        found = self._norm(convolve(self._formulation, x, self._weight[None], 1, (0, 2)), training)
        return probe(self._name, found)


class Encoder:
    """Embedded text (N, L, embedding) and lengths -> memory (N, L, embedding), zero after the lengths."""

    def __init__(self, variables: Variables, width: int) -> None:
        self._layers = [Convolution(variables, "encoder", number, width, width) for number in range(3)]
        self._lstm = Bidirectional(variables, "encoder.lstm", width, width // 2)

    def __call__(self, x: tf.Tensor, lengths: tf.Tensor, training: bool) -> tf.Tensor:
        x = x[:, None]
        for layer in self._layers:
            x = tf.nn.relu(layer(x, training))
        return tf.transpose(tf.concat(self._lstm(tf.transpose(x[:, 0], (1, 0, 2)), lengths), axis=2), (1, 0, 2))


class Prenet:
    """Frames (T, N, mels) -> (T, N, width)."""

    def __init__(self, variables: Variables, mels: int, width: int) -> None:
        self._weights = [
            variables.new(f"prenet.dense{number}.weight", features, width)
            for number, features in enumerate((mels, width))
        ]

    def __call__(self, x: tf.Tensor) -> tf.Tensor:
        for weight in self._weights:
            x = tf.nn.relu(tf.matmul(x, weight))
        return probe("prenet", x)


class Cell:
    """Weights of an LSTM with one bias."""

    def __init__(self, variables: Variables, name: str, width: int, hidden: int) -> None:
        self.w_ih = variables.new(f"{name}.w_ih", width, 4 * hidden)
        self.w_hh = variables.new(f"{name}.w_hh", hidden, 4 * hidden)
        self.b = variables.new(f"{name}.b", 4 * hidden)


class Attention:
    """Location-sensitive attention; `prepare` computes what is the same for all frames."""

    def __init__(self, variables: Variables, sizes: dict[str, Any]) -> None:
        units, filters = sizes["attention"], sizes["filters"]
        self.query = variables.new("attention.query.weight", sizes["lstm"], units)
        self._memory = variables.new("attention.memory.weight", sizes["embedding"], units)
        self._location_conv = variables.new("attention.location_conv.weight", sizes["window"], 1, filters)
        self._location_dense = variables.new("attention.location_dense.weight", filters, units)
        self._v = variables.new("attention.v.weight", units, 1)

    def prepare(self, memory: tf.Tensor, lengths: tf.Tensor) -> tuple[Callable[..., Tensors], Tensors]:
        """Return a function for one frame's attention, and the tensors that all frames share.

        Projected state (N, units), cumulative weights (N, L), shared -> context (N, embedding), the new weights (N, L).
        """
        keys = tf.matmul(memory, self._memory)
        # The location convolution and its dense layer are both linear, so their product is one narrow convolution.
        kernel = tf.matmul(self._location_conv[:, 0], self._location_dense)[:, None]
        mask = -1e9 * (1 - tf.sequence_mask(lengths, extent(memory, 1), memory.dtype))

        def attend(query: tf.Tensor, cumulative: tf.Tensor, shared: Tensors) -> Tensors:
            memory, keys, kernel, v = shared
            location = tf.nn.conv1d(
                cumulative[..., None], kernel, 1, "SAME"
            )  # the window is odd, so both sides are equal
            energy = tf.matmul(tf.tanh(query[:, None] + keys + location), v)[..., 0]
            share = tf.nn.softmax(energy + mask)
            return tf.matmul(share[:, None], memory)[:, 0], share

        return attend, (memory, keys, kernel, self._v.value())


class Network:
    """Text (N, L), its lengths, mel (N, M, T) -> mel, mel_post (N, M, T), gate (N, T)."""

    def __init__(self, sizes: dict[str, Any], variables: Variables) -> None:
        width, prenet, hidden, mels = sizes["embedding"], sizes["prenet"], sizes["lstm"], sizes["mels"]
        self._embedding = variables.new("embedding.weight", sizes["symbols"], width)
        self._encoder = Encoder(variables, width)
        self._prenet, self._taken = Prenet(variables, mels, prenet), prenet
        self._lstm1 = Cell(variables, "decoder.lstm1", prenet + width, hidden)
        self._lstm2 = Cell(variables, "decoder.lstm2", hidden, hidden)
        self._attention, self._recurrence = Attention(variables, sizes), variables.recurrence
        self._frame, self._gate = (
            Dense(variables, "frame", hidden + width, mels),
            Dense(variables, "gate", hidden + width, 1),
        )
        widths = (mels, *(sizes["postnet"],) * 4, mels)
        self._postnet = [Convolution(variables, "postnet", n, widths[n], widths[n + 1]) for n in range(5)]

    def __call__(self, text: tf.Tensor, text_length: tf.Tensor, mel: tf.Tensor, training: bool) -> dict[str, tf.Tensor]:
        memory = probe("encoded", self._encoder(tf.gather(self._embedding, text), text_length, training))
        read = probe("decoded", self._decode(mel, memory, text_length))
        frames = self._frame(read)  # (N, T, M), for the postnet's convolutions
        refined = frames[:, None]
        for number, layer in enumerate(self._postnet):
            refined = layer(refined, training) if number == 4 else tf.tanh(layer(refined, training))
        both = (tf.transpose(each, (0, 2, 1)) for each in (frames, frames + refined[:, 0]))
        return {**dict(zip(("mel", "mel_post"), both, strict=True)), "gate": self._gate(read)[..., 0]}

    def _decode(self, mel: tf.Tensor, memory: tf.Tensor, lengths: tf.Tensor) -> tf.Tensor:
        """Run the loop over frames: (N, T, H + embedding), the second LSTM's states concatenated with the contexts."""
        before = tf.pad(tf.transpose(mel, (2, 0, 1))[:-1], ((1, 0), (0, 0), (0, 0)))
        w_ih, w_hh = self._lstm1.w_ih.value(), self._lstm1.w_hh.value()
        hidden, width, batch, characters = w_hh.shape[0], memory.shape[2], memory.shape[0], extent(memory, 1)
        recurrence, (attend, shared) = (
            self._recurrence.resolved(hidden, batch),
            self._attention.prepare(memory, lengths),
        )
        weights = {
            "lstm1": tf.concat((w_ih[self._taken :], w_hh), 0),
            "lstm2": tf.concat((self._lstm2.w_ih, self._lstm2.w_hh), 0),
            "query": self._attention.query.value(),
        }
        added = {
            "lstm1": tf.matmul(self._prenet(before), w_ih[: self._taken]) + self._lstm1.b,
            "lstm2": self._lstm2.b.value(),
            "query": tf.zeros(weights["query"].shape[1], mel.dtype),
        }

        def step(affine: Affine, shared: Tensors, state: Tensors, given: None) -> tuple[Tensors, Tensors]:
            del given  # the inputs of a frame are in `added`
            h1, c1, h2, c2, context, seen = state
            h1, c1 = lstm_cell(affine("lstm1", tf.concat((context, h1), 1)), c1)
            h2, c2 = lstm_cell(affine("lstm2", tf.concat((h1, h2), 1)), c2)
            context, share = attend(affine("query", h2), seen, shared)
            return (h1, c1, h2, c2, context, seen + share), (h2, context)

        start = tuple(
            tf.zeros((batch, size), mel.dtype) for size in (hidden, hidden, hidden, hidden, width, characters)
        )
        _, read = recurrence.loop(step, weights, added, None, shared, start, (hidden, width))
        return tf.transpose(tf.concat(read, 2), (1, 0, 2))


INPUTS = ("text", "text_length", "mel")


def build(sizes: dict[str, Any], variables: Variables) -> Network:
    """Return the network; it creates its variables in `variables`."""
    return Network(sizes, variables)


def loss(outputs: dict[str, tf.Tensor], batch: dict[str, tf.Tensor]) -> tf.Tensor:
    """Squared errors of both spectrograms and the gate's cross-entropy, plain means that include padding."""
    target, gate = batch["mel"], outputs["gate"]
    ended = 1 - tf.sequence_mask(batch["mel_length"] - 1, extent(gate, 1), gate.dtype)
    squared = sum(tf.reduce_mean(tf.math.squared_difference(outputs[name], target)) for name in ("mel", "mel_post"))
    return squared + tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(ended, gate))
