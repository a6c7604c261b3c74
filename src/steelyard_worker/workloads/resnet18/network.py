"""ResNet-18 (He et al. 2016, arXiv 1512.03385) for small images, in canonical form.

Three stems exist: `seed` (3x3, then 2x2 max pool), `cifar` (3x3, no pool), `imagenet` (7x7 stride 2, then 3x3 max pool
stride 2). All convolutions are bias-free and followed by batch norm (epsilon 1e-5, weight of the new statistic 0.1).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from steelyard_worker.network import Input, Network, Parameter, batch_norm

if TYPE_CHECKING:
    from collections.abc import Iterator

STAGES = 4
BLOCKS = 2


def describe(sizes: dict[str, Any]) -> Network:
    """Sizes: channels, image (pixels a side), width (of stage 1), stem, classes, batch."""
    layers = _Layers(sizes["image"])
    layers.stem(sizes["channels"], sizes["width"], sizes["stem"])
    for stage in range(1, STAGES + 1):
        layers.stage(stage, sizes["width"] * 2 ** (stage - 1))
    layers.head(sizes["classes"])
    image = Input("image", (sizes["channels"], sizes["image"], sizes["image"]), "float32")
    label = Input("label", (), "int32", high=sizes["classes"])
    return Network(tuple(layers.parameters), (image, label), layers.macs)


def blocks(width: int) -> Iterator[tuple[str, int, int, int]]:
    """Yield (name, channels in, channels out, stride) of the eight basic blocks in network order."""
    channels = width
    for stage in range(1, STAGES + 1):
        for block in range(BLOCKS):
            out = width * 2 ** (stage - 1)
            yield f"stage{stage}.block{block}", channels, out, 2 if stage > 1 and block == 0 else 1
            channels = out


class _Layers:
    """Collect tensors and multiply-accumulates while following the extent of the image."""

    def __init__(self, extent: int) -> None:
        self.parameters: list[Parameter] = []
        self.macs = 0
        self._extent = extent
        self._channels = 0

    def stem(self, channels: int, width: int, stem: str) -> None:
        self._channels = channels
        self._conv("stem", width, 7 if stem == "imagenet" else 3, 2 if stem == "imagenet" else 1, suffix="conv")
        self.parameters += batch_norm("stem.bn", width)
        self._extent = self._extent if stem == "cifar" else self._extent // 2

    def stage(self, stage: int, width: int) -> None:
        for block in range(BLOCKS):
            self._block(f"stage{stage}.block{block}", width, 2 if stage > 1 and block == 0 else 1)

    def head(self, classes: int) -> None:
        self.parameters += [
            Parameter("head.weight", (classes, self._channels), "dense", "lecun_uniform_in"),
            Parameter("head.bias", (classes,), "bias", f"lecun_uniform_in:{self._channels}"),
        ]
        self.macs += classes * self._channels

    def _block(self, name: str, width: int, stride: int) -> None:
        entered, extent = self._channels, self._extent
        self._conv(name, width, 3, stride, suffix="conv1")
        self.parameters += batch_norm(f"{name}.bn1", width)
        self._conv(name, width, 3, 1, suffix="conv2")
        self.parameters += batch_norm(f"{name}.bn2", width)
        if stride != 1 or entered != width:
            self._channels, self._extent = entered, extent
            self._conv(name, width, 1, stride, suffix="shortcut.conv")
            self.parameters += batch_norm(f"{name}.shortcut.bn", width)

    def _conv(self, name: str, out: int, kernel: int, stride: int, suffix: str) -> None:
        shape = (out, self._channels, kernel, kernel)
        self.parameters.append(Parameter(f"{name}.{suffix}.weight", shape, "conv", "kaiming_normal_fan_out"))
        self._extent = (self._extent + 2 * (kernel // 2) - kernel) // stride + 1
        self.macs += out * self._channels * kernel * kernel * self._extent**2
        self._channels = out
