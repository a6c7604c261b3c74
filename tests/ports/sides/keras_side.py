"""The same small network as pytorch_side.py in Keras on any backend."""

import os

os.environ["KERAS_BACKEND"] = "BACKEND"
import keras
from keras import layers
from weights import W

EPS = 1e-5


def model():
    x = keras.Input((3, 8, 8))
    h = layers.Permute((2, 3, 1))(x)
    h = layers.Conv2D(6, 3, padding="same", name="conv")(h)
    h = layers.BatchNormalization(momentum=0.9, epsilon=1e-5, name="bn")(h)
    h = layers.MaxPooling2D(2, name="pool")(layers.Activation("relu")(h))
    h = layers.GlobalAveragePooling2D()(h)
    h = layers.Activation("gelu")(layers.Dense(16, name="up")(h))
    h = layers.LayerNormalization(epsilon=EPS, name="norm")(h)
    net = keras.Model(x, layers.Dense(5, name="down")(h))
    kernel = W["conv.weight"].transpose(2, 3, 1, 0)
    net.get_layer("conv").set_weights([kernel, W["conv.bias"]])
    net.get_layer("bn").set_weights([W[f"bn.{name}"] for name in ("weight", "bias", "mean", "var")])
    net.get_layer("norm").set_weights([W["norm.weight"], W["norm.bias"]])
    for name in ("up", "down"):
        net.get_layer(name).set_weights([W[f"{name}.weight"].T, W[f"{name}.bias"]])
    return net
