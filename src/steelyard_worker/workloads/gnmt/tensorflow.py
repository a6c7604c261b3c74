"""GNMT v2 in TensorFlow: loops over time-major sequences, attention over the whole target at once."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import tensorflow as tf

from steelyard_worker.frameworks.tensorflow.layers import Dense, Variables
from steelyard_worker.frameworks.tensorflow.recurrent import Bidirectional, Lstm
from steelyard_worker.probes import probe

if TYPE_CHECKING:
    from collections.abc import Callable

PAD, SMOOTHING = 0, 0.1


class Attention:
    """Queries (T, N, H), keys (S, N, H), lengths (N,) -> contexts (T, N, H), by normalised Bahdanau scores."""

    def __init__(self, variables: Variables, name: str, hidden: int) -> None:
        self._query = variables.new(f"{name}.query.weight", hidden, hidden)
        self._key = variables.new(f"{name}.key.weight", hidden, hidden)
        self._b, self._v = variables.new(f"{name}.b", hidden), variables.new(f"{name}.v", hidden)
        self._g = variables.new(f"{name}.g", 1)

    def __call__(self, queries: tf.Tensor, keys: tf.Tensor, lengths: tf.Tensor) -> tf.Tensor:
        values = tf.transpose(keys, (1, 0, 2))
        query = tf.transpose(tf.tensordot(queries, self._query, 1), (1, 0, 2))
        key = tf.tensordot(values, self._key, 1) + self._b
        direction = self._v * (self._g * tf.math.rsqrt(tf.reduce_sum(self._v * self._v)))
        scores = tf.tensordot(tf.tanh(query[:, :, None] + key[:, None]), direction, 1)
        inside = tf.sequence_mask(lengths, keys.shape[0])[:, None]
        weights = tf.nn.softmax(tf.where(inside, scores, tf.constant(-1e9, scores.dtype)))
        return tf.transpose(tf.matmul(weights, values), (1, 0, 2))


class Network:
    """Source (N, S), its lengths (N,), target (N, T) -> logits (N, T - 1, vocabulary) of the target's next words."""

    def __init__(self, sizes: dict[str, Any], variables: Variables) -> None:
        vocabulary, hidden, layers = sizes["vocabulary"], sizes["hidden"], sizes["layers"]
        self.embedding = variables.new("embedding.weight", vocabulary, hidden)
        self.ends = variables.block(Bidirectional(variables, "encoder.layer0", hidden, hidden))
        self.encoder = [
            _layer(variables, f"encoder.layer{number}", 2 * hidden if number == 1 else hidden, hidden)
            for number in range(1, layers)
        ]
        self.query = _layer(variables, "decoder.layer0", hidden, hidden)
        self.attention = Attention(variables, "attention", hidden)
        self.decoder = [_layer(variables, f"decoder.layer{number}", 2 * hidden, hidden) for number in range(1, layers)]
        self.classifier = Dense(variables, "classifier", hidden, vocabulary)

    def __call__(
        self, source: tf.Tensor, source_length: tf.Tensor, target: tf.Tensor, training: bool
    ) -> dict[str, tf.Tensor]:
        del training  # this network is the same in training and inference
        ends = self.ends(tf.gather(self.embedding, tf.transpose(source)), source_length)
        x = probe("encoded0", tf.concat(ends, axis=2))
        for number, lstm in enumerate(self.encoder, 1):
            y = lstm(x)
            x = probe(f"encoded{number}", x + y if number > 1 else y)
        keys, x = x, self.query(tf.gather(self.embedding, tf.transpose(target[:, :-1])))
        context = probe("context", self.attention(probe("decoded0", x), keys, source_length))
        for number, lstm in enumerate(self.decoder, 1):
            y = lstm(tf.concat((x, context), axis=2))
            x = probe(f"decoded{number}", x + y if number > 1 else y)
        steps, batch, hidden = x.shape
        logits = self.classifier(tf.reshape(tf.transpose(x, (1, 0, 2)), (batch * steps, hidden)))
        return {"logits": tf.reshape(logits, (batch, steps, logits.shape[1]))}


def _layer(variables: Variables, name: str, width: int, hidden: int) -> Callable[[tf.Tensor], tf.Tensor]:
    """Return an LSTM over all steps, from the first to the last: (T, N, width) -> (T, N, hidden)."""
    return variables.block(partial(Lstm(variables, name, width, hidden).every, backward=False))


INPUTS = ("source", "source_length", "target")


def build(sizes: dict[str, Any], variables: Variables) -> Network:
    """Return the network; it creates its variables in `variables`."""
    return Network(sizes, variables)


def loss(outputs: dict[str, tf.Tensor], batch: dict[str, tf.Tensor]) -> tf.Tensor:
    """Cross-entropy with smoothed labels, summed over all words except padding, divided by the number of sentences."""
    logits, labels = outputs["logits"], batch["target"][:, 1:]
    rest = SMOOTHING / logits.shape[2]
    smoothed = tf.one_hot(labels, logits.shape[2], 1 - SMOOTHING + rest, rest, dtype=logits.dtype)
    each = tf.nn.softmax_cross_entropy_with_logits(smoothed, logits)
    return tf.reduce_sum(each * tf.cast(labels != PAD, logits.dtype)) / labels.shape[0]
