"""Inception v3 from Flax's layers."""

import jax.numpy as jnp
import numpy as np
import optax
from flax import nnx

SOURCE = (
    "written by hand from flax.nnx.Conv, BatchNorm and Linear after torchvision's: no package has this network in JAX"
)
DIFFERS = "biased running variances"


class Block(nnx.Module):
    """Convolution, batch norm, ReLU."""

    def __init__(self, channels, out, kernel, rngs, stride=1, same=True):
        padding = [(extent // 2, extent // 2) for extent in kernel] if same else "VALID"
        self.conv = nnx.Conv(channels, out, kernel, stride, padding=padding, use_bias=False, rngs=rngs)
        self.norm = nnx.BatchNorm(out, momentum=0.9, epsilon=1e-3, rngs=rngs)

    def __call__(self, x):
        """Images (N, H, W, C)."""
        return nnx.relu(self.norm(self.conv(x)))


class Maker:
    """Builds branches; a step is (channels at width 32, kernel), followed by "down" if it has stride 2 and no padding."""

    def __init__(self, width, rngs):
        self.width, self.rngs = width, rngs

    def __call__(self, channels, *steps):
        """Return blocks in sequence; channels are given at width 32."""
        found = []
        for out, kernel, *down in steps:
            kernel = (kernel, kernel) if isinstance(kernel, int) else kernel
            scaled = channels * self.width // 32, out * self.width // 32
            found.append(Block(*scaled, kernel, self.rngs, 2 if down else 1, not down))
            channels = out
        return nnx.Sequential(*found)


def average(x):
    """3x3 average pool that counts its padding."""
    return nnx.avg_pool(x, (3, 3), padding=((1, 1), (1, 1)))


def halved(x):
    """3x3 max pool at stride 2."""
    return nnx.max_pool(x, (3, 3), strides=(2, 2))


class Parallel(nnx.Module):
    """Branches, concatenated in channels."""

    def __init__(self, *branches):
        self.branches = nnx.List(branches)

    def __call__(self, x):
        """Concatenate."""
        return jnp.concatenate([branch(x) for branch in self.branches], axis=-1)


def block_a(make, channels, pool):
    """1x1; 5x5; two 3x3; pool."""
    return Parallel(
        make(channels, (64, 1)),
        make(channels, (48, 1), (64, 5)),
        make(channels, (64, 1), (96, 3), (96, 3)),
        nnx.Sequential(average, make(channels, (pool, 1))),
    )


def block_c(make, inner):
    """1x1; factorised 7x7 once and twice; pool."""
    wide, tall = (inner, (1, 7)), (inner, (7, 1))
    return Parallel(
        make(768, (192, 1)),
        make(768, (inner, 1), wide, (192, (7, 1))),
        make(768, (inner, 1), tall, wide, tall, (192, (1, 7))),
        nnx.Sequential(average, make(768, (192, 1))),
    )


def block_e(make, channels):
    """1x1; two branches that end in parallel 1x3 and 3x1; pool."""

    def split(*steps):
        ends = Parallel(make(384, (384, (1, 3))), make(384, (384, (3, 1))))
        return nnx.Sequential(make(channels, *steps), ends)

    return Parallel(
        make(channels, (320, 1)),
        split((384, 1)),
        split((448, 1), (384, 3)),
        nnx.Sequential(average, make(channels, (192, 1))),
    )


class InceptionV3(nnx.Module):
    """Images (N, H, W, C) -> logits."""

    def __init__(self, sizes, rngs):
        make, width = Maker(sizes["width"], rngs), sizes["width"]
        first = Block(sizes["channels"], width, (3, 3), rngs, 2, same=False)
        second = Block(width, width, (3, 3), rngs, same=False)
        fifth = Block(80 * width // 32, 192 * width // 32, (3, 3), rngs, same=False)
        self.stem = nnx.Sequential(first, second, make(32, (64, 3)), halved, make(64, (80, 1)), fifth, halved)
        b = Parallel(make(288, (384, 3, "down")), make(288, (64, 1), (96, 3), (96, 3, "down")), halved)
        d = Parallel(
            make(768, (192, 1), (320, 3, "down")),
            make(768, (192, 1), (192, (1, 7)), (192, (7, 1)), (192, 3, "down")),
            halved,
        )
        a = (block_a(make, 192, 32), block_a(make, 256, 64), block_a(make, 288, 64))
        c = (block_c(make, inner) for inner in (128, 160, 160, 192))
        self.body = nnx.Sequential(*a, b, *c, d, block_e(make, 1280), block_e(make, 2048))
        self.head = nnx.Linear(2048 * width // 32, sizes["classes"], rngs=rngs)

    def __call__(self, x):
        """Stem, blocks, global average, dense layer."""
        return self.head(self.body(self.stem(x)).mean((1, 2)))


def model(sizes, inputs):  # noqa: ARG001
    """Return the network without the auxiliary head."""
    if sizes["aux"]:
        raise ValueError("This reference has no auxiliary head: use a preset without it.")
    return InceptionV3(sizes, nnx.Rngs(0))


def inputs(batch):
    """Images (N, H, W, C) and labels."""
    return {"image": np.ascontiguousarray(batch["image"].transpose(0, 2, 3, 1)), "label": batch["label"]}


def loss(model, inputs):
    """Mean softmax cross-entropy."""
    return optax.softmax_cross_entropy_with_integer_labels(model(inputs["image"]), inputs["label"]).mean()
