"""The TensorFlow side: model() returns your Keras model, with its weights loaded."""

import keras
from keras import layers


def model():
    # network = shop.models.encoder(...)
    # network.load_weights("/path/to/model.weights.h5")
    x = keras.Input((8,))
    hidden = layers.LayerNormalization(epsilon=1e-5)(layers.Dense(16)(x))
    return keras.Model(x, layers.Dense(3)(layers.Activation("gelu")(hidden)))


# def outputs(result): return result["logits"]  # which tensors of what the model returns are compared
# batch has the inputs and the arrays of [targets.NAME]:
# def loss(outputs, batch): return keras.losses.SparseCategoricalCrossentropy(from_logits=True)(batch["y"], outputs)
# def optimizer(model): return keras.optimizers.AdamW(1e-3)
