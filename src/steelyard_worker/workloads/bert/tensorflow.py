"""BERT in TensorFlow: states between embeddings and heads are (N * T, hidden)."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from steelyard_worker.frameworks.tensorflow.activations import gelu
from steelyard_worker.frameworks.tensorflow.attention import SelfAttention, masked_scores
from steelyard_worker.frameworks.tensorflow.layers import Dense, Variables
from steelyard_worker.frameworks.tensorflow.normalisation import LayerNorm
from steelyard_worker.probes import probe

EPSILON = 1e-12


class Layer:
    """One encoder layer: (N * T, hidden) -> (N * T, hidden)."""

    def __init__(self, sizes: dict[str, Any], variables: Variables, name: str) -> None:
        hidden, inner, heads = sizes["hidden"], sizes["intermediate"], sizes["heads"]
        self._attention = SelfAttention(variables, f"{name}.attention", hidden, heads)
        self._project = Dense(variables, f"{name}.attention.output", hidden, hidden)
        self._attention_norm = LayerNorm(variables, f"{name}.attention.norm", hidden, EPSILON)
        self._intermediate = Dense(variables, f"{name}.intermediate", hidden, inner)
        self._output = Dense(variables, f"{name}.output", inner, hidden)
        self._norm = LayerNorm(variables, f"{name}.norm", hidden, EPSILON)
        self._tanh = sizes["gelu"] == "tanh"

    def __call__(self, x: tf.Tensor, masked: tf.Tensor) -> tf.Tensor:
        x = self._attention_norm(x + self._project(self._attention(x, masked)))
        return self._norm(x + self._output(gelu(self._intermediate(x), self._tanh)))


class Embeddings:
    """Ids and segments (N, T) -> (N * T, hidden)."""

    def __init__(self, sizes: dict[str, Any], variables: Variables) -> None:
        hidden = sizes["hidden"]
        self.word = variables.new("embeddings.word.weight", sizes["vocabulary"], hidden)
        self._position = variables.new("embeddings.position.weight", sizes["positions"], hidden)
        self._segment = variables.new("embeddings.segment.weight", 2, hidden)
        self._norm = LayerNorm(variables, "embeddings.norm", hidden, EPSILON)

    def __call__(self, ids: tf.Tensor, segments: tf.Tensor) -> tf.Tensor:
        position = self._position[: ids.shape[1]]
        x = tf.gather(self.word, ids) + position + tf.gather(self._segment, segments)
        return self._norm(tf.reshape(x, (-1, x.shape[2])))


class Network:
    """Tokens of two sentences -> scores of the masked words, and of the second being the next (0) or a random one (1)."""

    def __init__(self, sizes: dict[str, Any], variables: Variables) -> None:
        hidden = sizes["hidden"]
        self._embeddings = Embeddings(sizes, variables)
        self._layers = [variables.block(Layer(sizes, variables, f"layer{number}")) for number in range(sizes["layers"])]
        self._pooler = Dense(variables, "pooler", hidden, hidden)
        self._transform = Dense(variables, "words.transform", hidden, hidden)
        self._norm = LayerNorm(variables, "words.norm", hidden, EPSILON)
        self._bias = variables.new("words.bias", sizes["vocabulary"])
        self._next = Dense(variables, "next", hidden, 2)
        self._dtype, self._tanh = variables.dtype, sizes["gelu"] == "tanh"

    def __call__(
        self, ids: tf.Tensor, mask: tf.Tensor, segments: tf.Tensor, places: tf.Tensor, training: bool
    ) -> dict[str, tf.Tensor]:
        del training  # this network is the same in training and inference
        x = self._embeddings(ids, segments)
        masked = masked_scores(mask, self._dtype)
        for layer in self._layers:
            x = layer(x, masked)
        starts = tf.range(0, x.shape[0], ids.shape[1])
        pooled = tf.tanh(probe("pooler", self._pooler(tf.gather(x, starts))))
        rows = tf.reshape(places + starts[:, None], (-1,))
        return {"words": tf.reshape(self._words(tf.gather(x, rows)), (*places.shape, -1)), "next": self._next(pooled)}

    def _words(self, x: tf.Tensor) -> tf.Tensor:
        """Score all words with the rows of the word embedding: (masked places, hidden) -> (masked places, vocabulary)."""
        x = self._norm(gelu(self._transform(x), self._tanh))
        return tf.matmul(x, self._embeddings.word, transpose_b=True) + self._bias


INPUTS = ("input_ids", "input_mask", "segment_ids", "masked_lm_positions")


def build(sizes: dict[str, Any], variables: Variables) -> Network:
    """Return the network; it creates its variables in `variables`."""
    return Network(sizes, variables)


def loss(outputs: dict[str, tf.Tensor], batch: dict[str, tf.Tensor]) -> tf.Tensor:
    """Weighted mean over all masked words of the batch, plus the mean over its sentence pairs."""
    cross_entropy = tf.nn.sparse_softmax_cross_entropy_with_logits
    weights = batch["masked_lm_weights"]
    words = cross_entropy(batch["masked_lm_ids"], outputs["words"])
    following = tf.reduce_mean(cross_entropy(batch["next_sentence_label"], outputs["next"]))
    return tf.reduce_sum(words * weights) / (tf.reduce_sum(weights) + 1e-5) + following
