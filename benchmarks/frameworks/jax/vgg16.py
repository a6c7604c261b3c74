"""flaxmodels' VGG-16; other image sizes than 224 pixels and narrower heads use its convolutions with dense layers that fit."""

import numpy as np
import optax
from flax import linen, nnx

SOURCE = "flaxmodels.VGG16 0.1.3; the head is rebuilt if image or dense layers differ from the published ones"
DIFFERS = ""


def model(sizes, inputs):
    """Return the network; it is called as in inference to switch dropout off, which is safe without batch norm."""
    import flaxmodels

    if sizes["width"] != 64 or sizes["batch_norm"] or sizes["freeze_backbone"]:
        raise ValueError(
            "flaxmodels has VGG-16 at width 64 and without batch norm only; a frozen body is not supported."
        )
    published = (sizes["image"], sizes["dense"]) == (224, 4096)

    class Network(linen.Module):
        @linen.compact
        def __call__(self, x):
            body = flaxmodels.VGG16(
                output="logits", pretrained=None, normalize=False, include_head=published, num_classes=sizes["classes"]
            )
            x = body(x, train=False)
            if published:
                return x
            x = x.reshape(len(x), -1)
            for _ in range(2 if sizes["dense"] else 0):
                x = linen.relu(linen.Dense(sizes["dense"])(x))
            return linen.Dense(sizes["classes"])(x)

    return nnx.bridge.ToNNX(Network(), rngs=nnx.Rngs(0)).lazy_init(inputs["image"])


def inputs(batch):
    """Images (N, H, W, C) and labels."""
    return {"image": np.ascontiguousarray(batch["image"].transpose(0, 2, 3, 1)), "label": batch["label"]}


def loss(model, inputs):
    """Mean softmax cross-entropy."""
    return optax.softmax_cross_entropy_with_integer_labels(model(inputs["image"]), inputs["label"]).mean()
