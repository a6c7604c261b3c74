"""Deep Speech 2 in Keras layers, as in Keras' example of speech recognition by CTC; images are (time, frequency)."""

import keras
import numpy as np
import tensorflow as tf
from keras import layers, ops

SOURCE = (
    "written by hand from keras.layers.Conv2D, BatchNormalization, LSTM and Bidirectional (Keras 3.15.1) and "
    "tf.nn.ctc_loss, as in Keras' example of speech recognition by CTC; no package has this network for TensorFlow 2"
)
DIFFERS = "biased running variances"


def convolution(x, inside, out, kernel, stride):
    """Convolution padded by half its kernel, batch norm, clip; frames after the end become zero."""
    x = layers.ZeroPadding2D((kernel[0] // 2, kernel[1] // 2))(x)
    x = layers.Conv2D(out, kernel, stride, use_bias=False)(x)
    x = layers.BatchNormalization(momentum=0.9, epsilon=1e-5)(x)
    return layers.ReLU(max_value=20.0)(x) * inside


def model(sizes):
    """Two convolutions, bidirectional LSTMs whose directions are summed, a dense layer without bias."""
    batch, hidden = sizes["batch"], sizes["hidden"]
    spectrogram = keras.Input((sizes["frames"], sizes["bins"], 1), batch_size=batch, name="spectrogram")
    frames = keras.Input((), batch_size=batch, dtype="int32", name="frames")
    steps = (sizes["frames"] + 1) // 2
    mask = ops.less(ops.arange(steps), ops.expand_dims((frames + 1) // 2, 1))
    inside = ops.cast(mask, "float32")[:, :, None, None]
    x = convolution(spectrogram, inside, sizes["channels"], (11, 41), (2, 2))
    x = convolution(x, inside, sizes["channels"], (11, 21), (1, 2))
    x = layers.Reshape((steps, x.shape[2] * x.shape[3]))(x)
    for number in range(sizes["layers"]):
        x = layers.BatchNormalization(momentum=0.9, epsilon=1e-5)(x) if number else x
        x = layers.Bidirectional(layers.LSTM(hidden, return_sequences=True), merge_mode="sum")(x, mask=mask)
    x = layers.BatchNormalization(momentum=0.9, epsilon=1e-5)(x)
    return keras.Model(
        {"spectrogram": spectrogram, "frames": frames}, layers.Dense(sizes["classes"], use_bias=False)(x)
    )


def inputs(batch):
    """Spectrograms (N, time, frequency, 1) and their lengths."""
    spectrogram = np.ascontiguousarray(batch["spectrogram"].transpose(0, 3, 2, 1))
    return {"spectrogram": spectrogram, "frames": batch["frames"]}


def loss(logits, batch):
    """CTC by the fused operator, which takes sparse labels; summed over the batch and divided by its size."""
    labels = tf.sparse.from_dense(batch["transcript"])
    lengths = (batch["frames"] + 1) // 2
    each = tf.nn.ctc_loss(labels, logits, None, lengths, logits_time_major=False, blank_index=0)
    return tf.reduce_mean(each)
