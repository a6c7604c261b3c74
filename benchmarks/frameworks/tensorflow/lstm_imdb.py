"""Sentiment classification by LSTMs, as in Keras' example "Bidirectional LSTM on IMDB"."""

import keras
from keras import layers

SOURCE = (
    "written by hand from keras.layers.Embedding, LSTM, Bidirectional and Dense (Keras 3.15.1), as in Keras' IMDB "
    "example"
)
DIFFERS = ""


def model(sizes):
    """Embedding, LSTM layers, dense layer on the last step, or on the first and the last."""
    both_ends = sizes["readout"] == "first+last"

    def lstm(every):
        layer = layers.LSTM(sizes["hidden"], return_sequences=every)
        return layers.Bidirectional(layer) if sizes["bidirectional"] else layer

    tokens = keras.Input((sizes["length"],), batch_size=sizes["batch"], dtype="int32")
    x = layers.Embedding(sizes["vocabulary"], sizes["embedding"], trainable=sizes["train_embedding"])(tokens)
    for _ in range(sizes["layers"] - 1):
        x = lstm(every=True)(x)
    x = lstm(every=both_ends or sizes["bidirectional"])(x)
    if both_ends:
        x = layers.Concatenate()([x[:, 0], x[:, -1]])
    elif sizes["bidirectional"]:
        x = x[:, -1]
    return keras.Model(tokens, layers.Dense(sizes["classes"])(x))


def inputs(batch):
    """Word indices."""
    return batch["tokens"]


def loss(logits, batch):
    """Mean softmax cross-entropy from logits."""
    return keras.losses.SparseCategoricalCrossentropy(from_logits=True)(batch["label"], logits)
