"""The same network of Keras' LSTM, with the weights that the PyTorch side has saved."""

from __future__ import annotations

from pathlib import Path

import keras
import numpy as np
from keras import layers

HIDDEN, CLASSES = 8, 3


def build(**changed):
    weights = np.load(Path(__file__).parent / "weights.npz")
    x = keras.Input((None, 5))
    one = layers.LSTM(HIDDEN, return_sequences=True, name="first", **changed)
    other = layers.LSTM(HIDDEN, return_sequences=True, name="second")
    head = layers.Dense(CLASSES, name="head")
    model = keras.Model(x, head(other(one(x))))
    for layer in (one, other):
        set_lstm(layer, weights, biases=2)
    head.set_weights([weights["head.weight"].T, weights["head.bias"]])
    return model


def set_lstm(layer, weights, biases):
    """Both frameworks order gates as input, forget, cell, output; PyTorch has two biases, which are added."""
    first, second, b, c = (
        weights[f"{layer.name}.{name}_l0"] for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
    )
    layer.set_weights([first.T, second.T, b + c if biases == 2 else b])
