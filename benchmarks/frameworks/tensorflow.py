"""TensorFlow as a person would write it by hand: a bare loop around our objects, and whole programs of its own idiom."""

import os

import numpy as np


def bare_loop(trainer, batch, steps):
    """The loop of TensorFlow's guide to custom training, around the compiled step that the trainer holds."""
    train_step = trainer.train_step
    for _ in range(steps):
        train_step(batch)


def idiomatic(workload, sizes, optimizer, batch):
    """Return (step, synchronise) of the same network in Keras layers with a `tf.function` training step."""
    os.environ["KERAS_BACKEND"] = "tensorflow"
    import keras
    import tensorflow as tf

    build = {"resnet18": resnet18, "resnet50": resnet50, "vgg16": vgg16, "inceptionv3": inceptionv3, "lstm-imdb": sentiment}
    model = build[workload](keras, sizes)
    if optimizer["name"] == "sgd":
        rule = keras.optimizers.SGD(optimizer["learning_rate"], momentum=optimizer["momentum"])
    else:
        rule = keras.optimizers.Adam(optimizer["learning_rate"], epsilon=optimizer["epsilon"])
    rule.build(model.trainable_variables)
    criterion = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    x = batch["tokens"] if workload == "lstm-imdb" else np.transpose(batch["image"], (0, 2, 3, 1))
    x, y = tf.constant(x), tf.constant(batch["label"])

    @tf.function
    def train_step(x, y):
        with tf.GradientTape() as tape:
            loss = criterion(y, model(x, training=True))
        rule.apply(tape.gradient(loss, model.trainable_variables), model.trainable_variables)
        return loss

    return lambda: train_step(x, y), tf.test.experimental.sync_devices


def resnet18(keras, sizes):
    """3x3 stem with a 2x2 pool, eight basic blocks, global average, dense layer; padding as in `keras.applications`."""
    layers = keras.layers

    def conv_norm(x, out, kernel, stride):
        if stride > 1 and kernel > 1:
            x = layers.ZeroPadding2D(1)(x)
        x = layers.Conv2D(out, kernel, stride, "valid" if stride > 1 else "same", use_bias=False)(x)
        return layers.BatchNormalization(momentum=0.9, epsilon=1e-5)(x)

    def block(x, out, stride):
        y = layers.ReLU()(conv_norm(x, out, 3, stride))
        y = conv_norm(y, out, 3, 1)
        shortcut = conv_norm(x, out, 1, stride) if stride > 1 or x.shape[-1] != out else x
        return layers.ReLU()(layers.Add()([y, shortcut]))

    inputs = keras.Input((sizes["image"], sizes["image"], sizes["channels"]), batch_size=sizes["batch"])
    x = layers.MaxPooling2D(2)(layers.ReLU()(conv_norm(inputs, sizes["width"], 3, 1)))
    for stage in range(4):
        for number in range(2):
            x = block(x, sizes["width"] * 2**stage, 2 if stage and not number else 1)
    return keras.Model(inputs, layers.Dense(sizes["classes"])(layers.GlobalAveragePooling2D()(x)))


def resnet50(keras, sizes):
    """`keras.applications.ResNet50` at its only width and depth; other sizes are no builder's, so they are refused.

    It is v1 (stride in the first 1x1: 6 % less arithmetic), has biases before batch norm, an epsilon of 1.001e-5, and here no
    weight decay.
    """
    if (sizes["width"], list(sizes["blocks"])) != (64, [3, 4, 6, 3]):
        raise SystemExit("keras.applications has ResNet-50 at width 64 only.")
    shape = (sizes["image"], sizes["image"], sizes["channels"])
    body = keras.applications.ResNet50(include_top=False, weights=None, input_shape=shape, pooling="avg")
    return keras.Model(body.inputs, keras.layers.Dense(sizes["classes"])(body.outputs[0]))


def vgg16(keras, sizes):
    """The layers of `keras.applications.VGG16` with dense layers of our widths behind them; here without weight decay."""
    if sizes["width"] != 64:
        raise SystemExit("keras.applications has VGG-16 at width 64 only.")
    shape = (sizes["image"], sizes["image"], sizes["channels"])
    body = keras.applications.VGG16(include_top=False, weights=None, input_shape=shape)
    x = keras.layers.Flatten()(body.outputs[0])
    for _ in range(2 if sizes["dense"] else 0):
        x = keras.layers.Dense(sizes["dense"], "relu")(x)
    return keras.Model(body.inputs, keras.layers.Dense(sizes["classes"])(x))


def inceptionv3(keras, sizes):
    """Keras' own; it has no scale in its batch norms, and its average pools leave padding out of the divisor."""
    shape = (sizes["image"], sizes["image"], sizes["channels"])
    return keras.applications.InceptionV3(
        weights=None, input_shape=shape, classes=sizes["classes"], classifier_activation=None
    )


def sentiment(keras, sizes):
    """Embedding, LSTM, dense layer on the last step."""
    inputs = keras.Input((sizes["length"],), batch_size=sizes["batch"], dtype="int32")
    x = keras.layers.Embedding(sizes["vocabulary"], sizes["embedding"])(inputs)
    for _ in range(sizes["layers"] - 1):
        x = keras.layers.LSTM(sizes["hidden"], return_sequences=True)(x)
    return keras.Model(inputs, keras.layers.Dense(sizes["classes"])(keras.layers.LSTM(sizes["hidden"])(x)))
