"""Inception v3 (Szegedy et al. 2016, arXiv 1512.00567) in canonical form, the same as torchvision's.

Every convolution is bias-free and followed by batch norm (epsilon 1e-3, weight of the new statistic 0.1) and ReLU. Average
pools are 3x3 at stride 1, padding counted in the divisor. `aux` adds the head after the last C block; it is also an
output in inference, so that training and inference run the same graph. The knob `dropout` adds dropout of 0.5 before the last
dense layer.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from steelyard_worker import classification
from steelyard_worker.convolutional import LARGE_ACTIVATIONS, Extent, Layers, Step, concatenated, window
from steelyard_worker.network import Input, Isolation, Network

# The published initialisation, a truncated normal of 0.1 for every kernel, makes the first losses on synthetic data large. The
# dense layer is initialised as in ResNet-50, because its fan-out, the number of classes, does not depend on its inputs.
CONV, DENSE = "kaiming_normal_fan_out", "lecun_uniform_in"
# (kernel, stride, padding) of the two halves of a 7x7 convolution.
WIDE, TALL = ((1, 7), 1, (0, 3)), ((7, 1), 1, (3, 0))

# The rounding of 94 convolutions hides that of the last dense layer. Its inputs are constants if the last batch norms of all
# branches before it only have their shifts.
LAST = ("e2.branch[14].step1.bn", "e2.branch[23].wide.bn", "e2.branch[23].tall.bn")
ADVERSARIAL = replace(
    LARGE_ACTIVATIONS,
    isolation=Isolation(
        ("head.*",), factors={f"{name}.gamma": 0.0 for name in LAST}, ramps={f"{name}.beta": 4.0 for name in LAST}
    ),
)

BLOCKS = ("a1", "a2", "a3", "b", "c1", "c2", "c3", "c4", "d", "e1", "e2")


def describe(sizes: dict[str, Any]) -> Network:
    """Sizes: channels, image (pixels a side), width (of the first convolution), aux, beta, classes, batch.

    Shifts of batch norms are initialised with zero, or with a ramp up to `beta` over the channels.
    """
    image = Input("image", (sizes["channels"], sizes["image"], sizes["image"]), "float32")
    label = Input("label", (), "int32", high=sizes["classes"])
    blocks = _Blocks(sizes["width"], sizes["beta"])
    x = blocks.stem(Extent(sizes["channels"], sizes["image"], sizes["image"]))
    for name, pool in {"a1": 32, "a2": 64, "a3": 64}.items():
        x = blocks.a(name, x, pool)
    x = blocks.b("b", x)
    for name, inner in {"c1": 128, "c2": 160, "c3": 160, "c4": 192}.items():
        x = blocks.c(name, x, inner)
    if sizes["aux"]:
        blocks.head("aux", x, sizes["classes"])
    x = blocks.e("e2", blocks.e("e1", blocks.d("d", x)))
    blocks.layers.dense("head", x.channels, sizes["classes"], DENSE)
    found, predictions = blocks.layers, classification.predictions(sizes["classes"])
    return Network(
        tuple(found.parameters),
        (image, label),
        found.macs,
        found.activations,
        predictions=predictions,
        adversarial=ADVERSARIAL,
        probes=tuple(found.probes),
        dropout=True,
        blocks=BLOCKS,
        likelihood=True,
        norm_epsilon=1e-3,
    )


class _Blocks:
    """The kinds of blocks; steps are (channels at width 32, kernel, stride, padding)."""

    def __init__(self, width: int, beta: float) -> None:
        self.layers = Layers(CONV, beta)
        self._width = width

    def stem(self, x: Extent) -> Extent:
        for name, step in {"conv1": (32, 3, 2), "conv2": (32, 3), "conv3": (64, 3, 1, 1)}.items():
            x = self.layers.block(name, x, self._step(*step))
        x = self.layers.block("conv4", window(x, 3, 2), self._step(80))
        return window(self.layers.block("conv5", x, self._step(192, 3)), 3, 2)

    def a(self, name: str, x: Extent, pool: int) -> Extent:
        return concatenated(
            (
                self._branch(f"{name}.branch1", x, (64,)),
                self._branch(f"{name}.branch2", x, (48,), (64, 5, 1, 2)),
                self._branch(f"{name}.branch3", x, (64,), (96, 3, 1, 1), (96, 3, 1, 1)),
                self._branch(f"{name}.branch4", window(x, 3, 1, 1), (pool,)),
            )
        )

    def b(self, name: str, x: Extent) -> Extent:
        return concatenated(
            (
                self._branch(f"{name}.branch1", x, (384, 3, 2)),
                self._branch(f"{name}.branch2", x, (64,), (96, 3, 1, 1), (96, 3, 2)),
                window(x, 3, 2),
            )
        )

    def c(self, name: str, x: Extent, inner: int) -> Extent:
        wide, tall = (inner, *WIDE), (inner, *TALL)
        return concatenated(
            (
                self._branch(f"{name}.branch1", x, (192,)),
                self._branch(f"{name}.branch2", x, (inner,), wide, (192, *TALL)),
                self._branch(f"{name}.branch3", x, (inner,), tall, wide, tall, (192, *WIDE)),
                self._branch(f"{name}.branch4", window(x, 3, 1, 1), (192,)),
            )
        )

    def d(self, name: str, x: Extent) -> Extent:
        return concatenated(
            (
                self._branch(f"{name}.branch1", x, (192,), (320, 3, 2)),
                self._branch(f"{name}.branch2", x, (192,), (192, *WIDE), (192, *TALL), (192, 3, 2)),
                window(x, 3, 2),
            )
        )

    def e(self, name: str, x: Extent) -> Extent:
        return concatenated(
            (
                self._branch(f"{name}.branch1", x, (320,)),
                self._split(f"{name}.branch2", x, (384,)),
                self._split(f"{name}.branch3", x, (448,), (384, 3, 1, 1)),
                self._branch(f"{name}.branch4", window(x, 3, 1, 1), (192,)),
            )
        )

    def head(self, name: str, x: Extent, classes: int) -> None:
        """5x5 average pool at stride 3, 1x1 and 5x5 block, global average, dense layer."""
        x = self.layers.block(f"{name}.step1", window(x, 5, 3), self._step(128), "trunc_normal:0.01")
        x = self.layers.block(f"{name}.step2", x, self._step(768, 5), "trunc_normal:0.01")
        self.layers.dense(f"{name}.head", x.channels, classes, "trunc_normal:0.001")

    def _split(self, name: str, x: Extent, *steps: tuple[Any, ...]) -> Extent:
        """A branch that ends in a 1x3 and a 3x1 block in parallel."""
        x = self._branch(name, x, *steps)
        wide = self.layers.block(f"{name}.wide", x, self._step(384, (1, 3), 1, (0, 1)))
        return concatenated((wide, self.layers.block(f"{name}.tall", x, self._step(384, (3, 1), 1, (1, 0)))))

    def _branch(self, name: str, x: Extent, *steps: tuple[Any, ...]) -> Extent:
        return self.layers.branch(name, x, *(self._step(*step) for step in steps))

    def _step(self, out: int, *how: Any) -> Step:
        return Step(out * self._width // 32, *how)
