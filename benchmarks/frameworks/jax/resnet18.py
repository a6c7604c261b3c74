"""jax-resnet's ResNet-18 (Flax) with the usual stem for small images: a 3x3 convolution in place of the 7x7 one."""

from functools import partial

import numpy as np
import optax
from flax import linen, nnx

SOURCE = "jax_resnet.ResNet18 0.0.4, with the first convolution and the pool replaced for small images"
DIFFERS = "biased running variances"


def model(sizes, inputs):
    """Return the network."""
    from jax_resnet import ConvBlock, ResNet18

    class Stem(linen.Module):
        conv_block_cls: linen.Module = ConvBlock

        @linen.compact
        def __call__(self, x):
            return self.conv_block_cls(sizes["width"], padding=((1, 1), (1, 1)))(x)

    pools = {"seed": partial(linen.max_pool, window_shape=(2, 2), strides=(2, 2)), "cifar": lambda x: x}
    found = ResNet18(
        n_classes=sizes["classes"],
        hidden_sizes=tuple(sizes["width"] * 2**stage for stage in range(4)),
        stem_cls=Stem,
        pool_fn=pools[sizes["stem"]],
    )
    return nnx.bridge.ToNNX(found, rngs=nnx.Rngs(0)).lazy_init(inputs["image"])


def inputs(batch):
    """Images (N, H, W, C) and labels."""
    return {"image": np.ascontiguousarray(batch["image"].transpose(0, 2, 3, 1)), "label": batch["label"]}


def loss(model, inputs):
    """Mean softmax cross-entropy."""
    logits = model(inputs["image"], mutable=["batch_stats"])
    return optax.softmax_cross_entropy_with_integer_labels(logits, inputs["label"]).mean()
