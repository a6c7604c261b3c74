"""Tacotron 2 in Keras layers: its decoder is a cell in `keras.layers.RNN`."""

import keras
import tensorflow as tf
from keras import layers, ops

SOURCE = (
    "written by hand from keras.layers.Conv1D, LSTM, LSTMCell and RNN (Keras 3.15.1); TensorFlowTTS needs "
    "tensorflow-addons, which supports TensorFlow up to 2.14 only"
)
DIFFERS = "biased running variances"


def convolution(x, out):
    """Convolution of width 5 that keeps the length, batch norm."""
    x = layers.Conv1D(out, 5, padding="same", use_bias=False)(x)
    return layers.BatchNormalization(momentum=0.9, epsilon=1e-5)(x)


class Decoder(layers.Layer):
    """A cell of two LSTMs and location-sensitive attention; `attend_to` sets the memory before the cell is run."""

    def __init__(self, sizes):
        super().__init__()
        hidden, units = sizes["lstm"], sizes["attention"]
        self.first, self.second = layers.LSTMCell(hidden), layers.LSTMCell(hidden)
        self.query, self.key = layers.Dense(units, use_bias=False), layers.Dense(units, use_bias=False)
        self.location_conv = layers.Conv1D(sizes["filters"], sizes["window"], padding="same", use_bias=False)
        self.location_dense = layers.Dense(units, use_bias=False)
        self.v = layers.Dense(1, use_bias=False)
        width, characters = sizes["embedding"], sizes["characters"]
        self.state_size = [hidden, hidden, hidden, hidden, width, characters]
        self.output_size = hidden + width
        self.shapes = (sizes["batch"], sizes["prenet"], width, hidden, characters)

    def build(self, *_):
        """Build the layers."""
        batch, prenet, width, hidden, characters = self.shapes
        self.first.build((batch, prenet + width))
        self.second.build((batch, hidden))
        self.query.build((batch, hidden))
        self.key.build((batch, characters, width))
        self.location_conv.build((batch, characters, 1))
        self.location_dense.build((batch, characters, self.location_conv.filters))
        self.v.build((batch, characters, self.key.units))

    def attend_to(self, memory, inside):
        """Store the memory (N, L, width), its keys and the mask of valid positions."""
        self.memory, self.keys, self.inside = memory, self.key(memory), inside

    def call(self, frame, states, training=False):
        """Decode one frame."""
        h1, c1, h2, c2, context, seen = states
        h1, (_, c1) = self.first(ops.concatenate([frame, context], 1), [h1, c1])
        h2, (_, c2) = self.second(h1, [h2, c2])
        location = self.location_dense(self.location_conv(ops.expand_dims(seen, 2)))
        energy = self.v(ops.tanh(ops.expand_dims(self.query(h2), 1) + self.keys + location))[..., 0]
        share = ops.softmax(ops.where(self.inside, energy, -1e9))
        context = ops.matmul(ops.expand_dims(share, 1), self.memory)[:, 0]
        return ops.concatenate([h2, context], 1), [h1, c1, h2, c2, context, seen + share]


class Decoding(layers.Layer):
    """The decoder over all frames: (N, T, prenet), memory, mask of valid positions -> (N, T, lstm + embedding)."""

    def __init__(self, sizes):
        super().__init__()
        self.cell = Decoder(sizes)
        self.rnn = layers.RNN(self.cell, return_sequences=True)

    def build(self, frames_shape, memory_shape, inside_shape):
        """Build the cell."""
        self.rnn.build(frames_shape)

    def call(self, frames, memory, inside):
        """Run the cell over all frames."""
        self.cell.attend_to(memory, inside)
        return self.rnn(frames)

    def compute_output_shape(self, frames_shape, memory_shape, inside_shape):
        """Return (N, T, width of the cell's output)."""
        return (*frames_shape[:2], self.cell.output_size)


def model(sizes):
    """Encoder, prenet, decoder, postnet; teacher-forced."""
    batch, mels, characters = sizes["batch"], sizes["mels"], sizes["characters"]
    text = keras.Input((characters,), batch_size=batch, dtype="int32", name="text")
    length = keras.Input((), batch_size=batch, dtype="int32", name="text_length")
    mel = keras.Input((sizes["frames"], mels), batch_size=batch, name="mel")
    mask = ops.less(ops.arange(characters), ops.expand_dims(length, 1))
    x = layers.Embedding(sizes["symbols"], sizes["embedding"])(text)
    for _ in range(3):
        x = layers.ReLU()(convolution(x, sizes["embedding"]))
    lstm = layers.LSTM(sizes["embedding"] // 2, return_sequences=True)
    memory = layers.Bidirectional(lstm)(x, mask=mask)
    before = layers.ZeroPadding1D((1, 0))(mel[:, :-1])
    for _ in range(2):
        before = layers.Dense(sizes["prenet"], "relu", use_bias=False)(before)
    read = Decoding(sizes)(before, memory, mask)
    frames, gate = layers.Dense(mels)(read), layers.Dense(1)(read)
    x = frames
    for _ in range(4):
        x = layers.Activation("tanh")(convolution(x, sizes["postnet"]))
    refined = layers.Add()([frames, convolution(x, mels)])
    return keras.Model(
        {"text": text, "text_length": length, "mel": mel}, {"mel": frames, "mel_post": refined, "gate": gate[..., 0]}
    )


def inputs(batch):
    """Text, its lengths, and mel (N, T, M)."""
    return {"text": batch["text"], "text_length": batch["text_length"], "mel": batch["mel"].transpose(0, 2, 1).copy()}


def loss(outputs, batch):
    """Squared errors of both spectrograms and the gate's cross-entropy: plain means that include padding."""
    target, gate = tf.transpose(batch["mel"], (0, 2, 1)), outputs["gate"]
    ended = 1 - tf.sequence_mask(batch["mel_length"] - 1, gate.shape[1], gate.dtype)
    squared = sum(tf.reduce_mean(tf.math.squared_difference(outputs[name], target)) for name in ("mel", "mel_post"))
    return squared + tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(ended, gate))
