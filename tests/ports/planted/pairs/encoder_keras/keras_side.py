"""The same encoder of Keras' MultiHeadAttention, Dense and LayerNormalization."""

from __future__ import annotations

from pathlib import Path

import keras
import numpy as np
from keras import layers

WIDTH, HEADS, HIDDEN, LAYERS = 24, 3, 40, 2


def build(
    epsilon=1e-5, activation="gelu", attention=layers.MultiHeadAttention, approximate=False, order="after", factor=1.0
):
    weights = np.load(Path(__file__).parent / "weights.npz")
    inputs = x = keras.Input((None, WIDTH))
    for n in range(LAYERS):
        mixed = attention(HEADS, WIDTH // HEADS, name=f"attention_{n}")(x, x)
        x = layers.LayerNormalization(epsilon=epsilon, name=f"norm1_{n}")(x + mixed)
        hidden = layers.Dense(HIDDEN, name=f"up_{n}")(x)
        if activation == "gelu":
            hidden = keras.ops.gelu(hidden, approximate=approximate)
        elif activation:
            hidden = layers.Activation(activation)(hidden)
        hidden = layers.Dense(WIDTH, name=f"down_{n}")(hidden)
        norm = layers.LayerNormalization(epsilon=epsilon, name=f"norm2_{n}")
        x = norm(x * factor + hidden) if order == "after" else x * factor + norm(hidden)
    model = keras.Model(inputs, layers.Dense(5, name="head")(x))
    for n in range(LAYERS):
        give(model, weights, n)
    model.get_layer("head").set_weights([weights["1.weight"].T, weights["1.bias"]])
    return model


def give(model, weights, n):
    """Give one layer its weights: query, key and value are one kernel in PyTorch, with heads beside each other."""
    known = {k.removeprefix(f"0.layers.{n}."): v for k, v in weights.items()}
    heads = (WIDTH, HEADS, WIDTH // HEADS)
    kernels = [each.T.reshape(heads) for each in np.split(known["self_attn.in_proj_weight"], 3)]
    biases = [each.reshape(heads[1:]) for each in np.split(known["self_attn.in_proj_bias"], 3)]
    mixed = [
        known["self_attn.out_proj.weight"].T.reshape(HEADS, WIDTH // HEADS, WIDTH),
        known["self_attn.out_proj.bias"],
    ]
    three = [array for pair in zip(kernels, biases, strict=True) for array in pair]
    model.get_layer(f"attention_{n}").set_weights([*three, *mixed])
    for name, own in (("up", "linear1"), ("down", "linear2")):
        model.get_layer(f"{name}_{n}").set_weights([known[f"{own}.weight"].T, known[f"{own}.bias"]])
    for name in ("norm1", "norm2"):
        model.get_layer(f"{name}_{n}").set_weights([known[f"{name}.weight"], known[f"{name}.bias"]])


def loss(outputs, batch):
    return keras.ops.mean(keras.losses.sparse_categorical_crossentropy(batch["y"], outputs, from_logits=True))


def optimizer(model):
    return keras.optimizers.SGD(0.1, momentum=0.9)
