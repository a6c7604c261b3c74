"""ResNet-18 for small images in Keras layers."""

import keras
import numpy as np
from keras import layers

SOURCE = (
    "written by hand from keras.layers, padded like keras.applications; keras.applications has no ResNet-18, and "
    "keras_hub's has only a first convolution with stride 2"
)
DIFFERS = "biased running variances"


def conv_norm(x, out, kernel, stride):
    """Convolution padded by half its kernel, batch norm."""
    if stride > 1 and kernel > 1:
        x = layers.ZeroPadding2D(1)(x)
    x = layers.Conv2D(out, kernel, stride, "valid" if stride > 1 else "same", use_bias=False)(x)
    return layers.BatchNormalization(momentum=0.9, epsilon=1e-5)(x)


def block(x, out, stride):
    """Two 3x3 convolutions, and a projected shortcut where the shape changes."""
    y = layers.ReLU()(conv_norm(x, out, 3, stride))
    y = conv_norm(y, out, 3, 1)
    shortcut = conv_norm(x, out, 1, stride) if stride > 1 or x.shape[-1] != out else x
    return layers.ReLU()(layers.Add()([y, shortcut]))


def model(sizes):
    """3x3 stem with a 2x2 pool, eight basic blocks, global average, dense layer."""
    image = keras.Input((sizes["image"], sizes["image"], sizes["channels"]), batch_size=sizes["batch"])
    x = layers.MaxPooling2D(2)(layers.ReLU()(conv_norm(image, sizes["width"], 3, 1)))
    for stage in range(4):
        for number in range(2):
            x = block(x, sizes["width"] * 2**stage, 2 if stage and not number else 1)
    return keras.Model(image, layers.Dense(sizes["classes"])(layers.GlobalAveragePooling2D()(x)))


def inputs(batch):
    """Images, channels last."""
    return np.ascontiguousarray(batch["image"].transpose(0, 2, 3, 1))


def loss(logits, batch):
    """Mean softmax cross-entropy from logits."""
    return keras.losses.SparseCategoricalCrossentropy(from_logits=True)(batch["label"], logits)
