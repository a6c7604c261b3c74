"""Describe a residual network (He et al. 2016, arXiv 1512.03385) layer by layer: stem, convolutions, shortcuts, head.

All convolutions are bias-free, padded by half their kernel and followed by batch norm (epsilon 1e-5, weight of the new
statistic 0.1). Three stems exist: `seed` (3x3, then 2x2 max pool), `cifar` (3x3, no pool), `imagenet` (7x7 stride 2, then 3x3
max pool stride 2, padded by one on each side).
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from steelyard_worker.convolutional import STORED, Extent, window
from steelyard_worker.network import Parameter, batch_norm

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


STEMS = ("seed", "cifar", "imagenet")


class Layers:
    """Collects `parameters` in network order, `macs`, `frozen_macs` and `activations`; if `frozen`, only the head is trained."""

    def __init__(self, frozen: bool = False) -> None:
        self.parameters: list[Parameter] = []
        self.macs = self.frozen_macs = self.activations = 0
        self._frozen = frozen

    def conv(self, conv: str, norm: str, x: Extent, out: int, kernel: int, stride: int = 1) -> Extent:
        """Add convolution `conv` and batch norm `norm`; return the extent after them."""
        shape = (out, x.channels, kernel, kernel)
        found = (Parameter(f"{conv}.weight", shape, "conv", "kaiming_normal_fan_out"), *batch_norm(norm, out))
        self.parameters += [replace(each, trainable=False) for each in found] if self._frozen else found
        seen = window(x, kernel, stride, kernel // 2)
        macs = out * x.channels * kernel * kernel * seen.height * seen.width
        self.macs += macs
        self.frozen_macs += macs if self._frozen else 0
        self.activations += 0 if self._frozen else STORED * out * seen.height * seen.width
        return replace(seen, channels=out)

    def stem(self, x: Extent, width: int, stem: str) -> Extent:
        """Add the named stem; return the extent after it."""
        if stem == "imagenet":
            return window(self.conv("stem.conv", "stem.bn", x, width, 7, 2), 3, 2, 1)
        x = self.conv("stem.conv", "stem.bn", x, width, 3)
        return x if stem == "cifar" else window(x, 2, 2)

    def shortcut(self, name: str, x: Extent, out: int, stride: int) -> None:
        """Add the projection of a block's input if the block changes its shape."""
        if stride != 1 or x.channels != out:
            self.conv(f"{name}.shortcut.conv", f"{name}.shortcut.bn", x, out, 1, stride)

    def head(self, features: int, classes: int) -> None:
        """Add the dense layer after the global mean."""
        self.parameters += [
            Parameter("head.weight", (classes, features), "dense", "lecun_uniform_in"),
            Parameter("head.bias", (classes,), "bias", f"lecun_uniform_in:{features}"),
        ]
        self.macs += classes * features


def probes(counts: Iterable[int]) -> tuple[str, ...]:
    """Return the inner tensors of the network that are compared: the outputs of the stem and of every block."""
    return "stem", *names_of_blocks(counts)


def names_of_blocks(counts: Iterable[int]) -> tuple[str, ...]:
    """Return the names of all blocks."""
    return tuple(name for name, *_ in blocks(1, counts))


def blocks(width: int, counts: Iterable[int], expansion: int = 1) -> Iterator[tuple[str, int, int, int]]:
    """Yield (name, input channels, inner channels, stride) of every block; its output has `expansion` times the inner channels.

    Stage s has `width` * 2^(s-1) inner channels; all stages except the first begin with stride 2.
    """
    channels = width
    for stage, count in enumerate(counts, 1):
        within = width * 2 ** (stage - 1)
        for block in range(count):
            yield f"stage{stage}.block{block}", channels, within, 2 if stage > 1 and block == 0 else 1
            channels = within * expansion
