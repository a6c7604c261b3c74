"""GNMT v2 in Keras layers."""

import keras
import tensorflow as tf
from keras import layers, ops

SOURCE = (
    "written by hand from keras.layers.Embedding, LSTM, Bidirectional and Dense (Keras 3.15.1); Google's "
    "tensorflow/nmt is a TensorFlow 1 program, and tensorflow-addons' attention supports TensorFlow up to 2.14 only"
)
DIFFERS = ""
PAD, SMOOTHING = 0, 0.1


class NormalisedBahdanau(layers.Layer):
    """`keras.layers.AdditiveAttention` with a bias and a normalised scale."""

    def build(self, queries_shape, keys_shape, inside_shape):
        """Create two dense layers, a direction and its length."""
        width = keys_shape[-1]
        self.query, self.key = layers.Dense(width, use_bias=False), layers.Dense(width)
        self.query.build(queries_shape)
        self.key.build(keys_shape)
        self.v = self.add_weight((width,), "random_normal", name="v")
        self.g = self.add_weight((1,), keras.initializers.Constant(width**-0.5), name="g")

    def call(self, queries, keys, inside):
        """Queries (N, T, H), keys (N, S, H), mask of valid keys (N, S) -> contexts (N, T, H)."""
        sums = ops.expand_dims(self.query(queries), 2) + ops.expand_dims(self.key(keys), 1)
        direction = self.g * self.v * ops.rsqrt(ops.sum(ops.square(self.v)))
        scores = ops.matmul(ops.tanh(sums), ops.expand_dims(direction, 1))[..., 0]
        weights = ops.softmax(ops.where(ops.expand_dims(inside, 1), scores, -1e9))
        return ops.matmul(weights, keys)

    def compute_output_shape(self, queries_shape, keys_shape, inside_shape):
        """Return the shape of the queries."""
        return queries_shape


def model(sizes):
    """Encoder and decoder; only the first layer uses the lengths."""
    vocabulary, hidden, batch = sizes["vocabulary"], sizes["hidden"], sizes["batch"]
    source = keras.Input((sizes["source"],), batch_size=batch, dtype="int32", name="source")
    length = keras.Input((), batch_size=batch, dtype="int32", name="source_length")
    target = keras.Input((sizes["target"],), batch_size=batch, dtype="int32", name="target")
    mask = ops.less(ops.arange(sizes["source"]), ops.expand_dims(length, 1))
    embedding = layers.Embedding(vocabulary, hidden)
    x = layers.Bidirectional(layers.LSTM(hidden, return_sequences=True))(embedding(source), mask=mask)
    for number in range(1, sizes["layers"]):
        y = layers.LSTM(hidden, return_sequences=True)(x)
        x = y if number == 1 else layers.Add()([x, y])
    keys, x = x, layers.LSTM(hidden, return_sequences=True)(embedding(target[:, :-1]))
    context = NormalisedBahdanau()(x, keys, mask)
    for number in range(1, sizes["layers"]):
        y = layers.LSTM(hidden, return_sequences=True)(layers.Concatenate()([x, context]))
        x = y if number == 1 else layers.Add()([x, y])
    inputs = {"source": source, "source_length": length, "target": target}
    return keras.Model(inputs, layers.Dense(vocabulary)(x))


def inputs(batch):
    """Return the whole batch by canonical names."""
    return {name: batch[name] for name in ("source", "source_length", "target")}


def loss(logits, batch):
    """Cross-entropy with smoothed labels, summed over words without padding, divided by the number of sentences."""
    labels = batch["target"][:, 1:]
    smoothed = tf.one_hot(labels, logits.shape[-1])
    each = keras.losses.categorical_crossentropy(smoothed, logits, from_logits=True, label_smoothing=SMOOTHING)
    return tf.reduce_sum(each * tf.cast(labels != PAD, each.dtype)) / labels.shape[0]
