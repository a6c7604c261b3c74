"""jax-resnet's ResNet-50 (Flax), which is v1.5: the stride is in the 3x3 convolution."""

from functools import partial

import numpy as np
import optax
from flax import linen, nnx

SOURCE = "jax_resnet.ResNet50 0.0.4"
DIFFERS = "biased running variances"


def model(sizes, inputs):
    """Return the network; the package has the stride in one place only."""
    from jax_resnet import ConvBlock, ResNet50

    if sizes["variant"] != "v1.5" or sizes["freeze_backbone"]:
        raise ValueError("jax-resnet has ResNet-50 as v1.5 only; a frozen body is not supported.")

    class Stem(linen.Module):
        conv_block_cls: linen.Module = ConvBlock

        @linen.compact
        def __call__(self, x):
            block = partial(self.conv_block_cls, kernel_size=(7, 7), strides=(2, 2), padding=((3, 3), (3, 3)))
            return block(sizes["width"])(x)

    found = ResNet50(
        n_classes=sizes["classes"],
        stage_sizes=tuple(sizes["blocks"]),
        hidden_sizes=tuple(sizes["width"] * 2**stage for stage in range(4)),
        **({} if sizes["width"] == 64 else {"stem_cls": Stem}),
    )
    return nnx.bridge.ToNNX(found, rngs=nnx.Rngs(0)).lazy_init(inputs["image"])


def inputs(batch):
    """Images (N, H, W, C) and labels."""
    return {"image": np.ascontiguousarray(batch["image"].transpose(0, 2, 3, 1)), "label": batch["label"]}


def loss(model, inputs):
    """Mean softmax cross-entropy."""
    logits = model(inputs["image"], mutable=["batch_stats"])
    return optax.softmax_cross_entropy_with_integer_labels(logits, inputs["label"]).mean()
