"""GoogLeNet with batch norm from Flax's layers."""

from pathlib import Path

import jax.numpy as jnp
import numpy as np
import optax
from flax import nnx

from steelyard_worker.network import load

SOURCE = (
    "written by hand from flax.nnx.Conv, BatchNorm and Linear after torchvision's: no package has this network in JAX"
)
DIFFERS = "biased running variances"
BLOCKS = load(Path(__file__).parent.parent, "published").GOOGLENET


class Block(nnx.Module):
    """Convolution, batch norm, ReLU."""

    def __init__(self, channels, out, kernel, rngs, stride=1):
        window = (kernel, kernel)
        self.conv = nnx.Conv(channels, out, window, stride, padding=kernel // 2, use_bias=False, rngs=rngs)
        self.norm = nnx.BatchNorm(out, momentum=0.9, epsilon=1e-3, rngs=rngs)

    def __call__(self, x):
        """Images (N, H, W, C)."""
        return nnx.relu(self.norm(self.conv(x)))


class Inception(nnx.Module):
    """Four branches, concatenated in channels."""

    def __init__(self, channels, counts, last, rngs):
        one, reduce3, three, reduce5, five, pool = counts
        self.branch1 = Block(channels, one, 1, rngs)
        self.branch2 = nnx.Sequential(Block(channels, reduce3, 1, rngs), Block(reduce3, three, 3, rngs))
        self.branch3 = nnx.Sequential(Block(channels, reduce5, 1, rngs), Block(reduce5, five, last, rngs))
        self.branch4 = Block(channels, pool, 1, rngs)

    def __call__(self, x):
        """Concatenate."""
        pooled = nnx.max_pool(x, (3, 3), padding=((1, 1), (1, 1)))
        return jnp.concatenate((self.branch1(x), self.branch2(x), self.branch3(x), self.branch4(pooled)), axis=-1)


def halved(x, window):
    """Max pool at stride 2, its extent rounded up."""
    spare = [(0, (extent - window) % 2) for extent in x.shape[1:3]]
    return nnx.max_pool(x, (window, window), strides=(2, 2), padding=spare)


class GoogLeNet(nnx.Module):
    """Images (N, H, W, C) -> logits."""

    def __init__(self, sizes, rngs):
        width = sizes["width"]
        self.stem1 = Block(sizes["channels"], width, 7, rngs, stride=2)
        self.stem2 = nnx.Sequential(Block(width, width, 1, rngs), Block(width, 3 * width, 3, rngs))
        channels, blocks = 3 * width, []
        for counts in BLOCKS:
            if isinstance(counts, int):
                blocks.append(lambda x, window=counts: halved(x, window))
                continue
            scaled = [count * width // 64 for count in counts]
            blocks.append(Inception(channels, scaled, 5 if sizes["five_by_five"] else 3, rngs))
            channels = scaled[0] + scaled[2] + scaled[4] + scaled[5]
        self.body = nnx.Sequential(*blocks)
        self.head = nnx.Linear(channels, sizes["classes"], rngs=rngs)

    def __call__(self, x):
        """Stem, blocks, global average, dense layer."""
        x = halved(self.stem2(halved(self.stem1(x), 3)), 3)
        return self.head(self.body(x).mean((1, 2)))


def model(sizes, inputs):  # noqa: ARG001
    """Return the network without auxiliary heads."""
    if sizes["aux"]:
        raise ValueError("This reference has no auxiliary heads: use a preset without them.")
    return GoogLeNet(sizes, nnx.Rngs(0))


def inputs(batch):
    """Images (N, H, W, C) and labels."""
    return {"image": np.ascontiguousarray(batch["image"].transpose(0, 2, 3, 1)), "label": batch["label"]}


def loss(model, inputs):
    """Mean softmax cross-entropy."""
    return optax.softmax_cross_entropy_with_integer_labels(model(inputs["image"]), inputs["label"]).mean()
