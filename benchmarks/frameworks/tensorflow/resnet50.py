"""ResNet-50 from KerasHub."""

import keras
import keras_hub
import numpy as np

SOURCE = (
    "keras_hub 0.32.0, models.ResNetBackbone as in its presets resnet_50 (keras.applications.ResNet50 is v1, "
    "with biases)"
)
DIFFERS = "biased running variances"


def model(sizes):
    """Return the network; the package has only width 64, with the stride in the 3x3 convolution."""
    if sizes["width"] != 64 or sizes["variant"] != "v1.5":
        raise SystemExit("keras_hub has ResNet-50 v1.5 at width 64 only.")
    body = keras_hub.models.ResNetBackbone(
        input_conv_filters=[64],
        input_conv_kernel_sizes=[7],
        stackwise_num_filters=[64, 128, 256, 512],
        stackwise_num_blocks=list(sizes["blocks"]),
        stackwise_num_strides=[1, 2, 2, 2],
        block_type="bottleneck_block",
        image_shape=(sizes["image"], sizes["image"], sizes["channels"]),
    )
    body.trainable = not sizes["freeze_backbone"]
    x = keras.layers.GlobalAveragePooling2D()(body.outputs[0])
    return keras.Model(body.inputs, keras.layers.Dense(sizes["classes"])(x))


def inputs(batch):
    """Images, channels last."""
    return np.ascontiguousarray(batch["image"].transpose(0, 2, 3, 1))


def loss(logits, batch):
    """Mean softmax cross-entropy from logits."""
    return keras.losses.SparseCategoricalCrossentropy(from_logits=True)(batch["label"], logits)
