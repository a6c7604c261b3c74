"""Parts of residual networks: convolutions, batch norms, stems, shortcuts, and the classifier around a body of blocks.

Prefixes give the parameters their canonical names.
"""

from __future__ import annotations

from typing import Any

from mxnet.gluon import HybridBlock, nn


def conv(channels: int, out: int, kernel: int, stride: int, prefix: str) -> nn.Conv2D:
    """Return a bias-free convolution padded by half its kernel."""
    return nn.Conv2D(out, kernel, stride, kernel // 2, use_bias=False, in_channels=channels, prefix=prefix)


def batch_norm(channels: int, prefix: str, frozen: bool = False) -> nn.BatchNorm:
    """Return a batch norm, with running statistics only if `frozen`; its momentum is the weight of the old statistic (P-01)."""
    return nn.BatchNorm(
        axis=1,
        momentum=0.9,
        epsilon=1e-5,
        center=True,
        scale=True,
        in_channels=channels,
        prefix=prefix,
        use_global_stats=frozen,
    )


def stem(channels: int, width: int, kind: str, frozen: bool = False) -> nn.HybridSequential:
    """Return the stem named `seed`, `cifar` or `imagenet`."""
    large, found = kind == "imagenet", nn.HybridSequential(prefix="stem.")
    with found.name_scope():
        found.add(
            conv(channels, width, 7 if large else 3, 2 if large else 1, "conv."),
            batch_norm(width, "bn.", frozen),
            nn.Activation("relu"),
        )
        if kind != "cifar":
            found.add(nn.MaxPool2D(3, 2, 1) if large else nn.MaxPool2D(2, 2, 0))
    return found


def shortcut(channels: int, out: int, stride: int, frozen: bool = False) -> nn.HybridSequential:
    """Return the shortcut of a block: the identity, or a projection where its shape changes."""
    found = nn.HybridSequential(prefix="shortcut.")
    if stride != 1 or channels != out:
        with found.name_scope():
            found.add(conv(channels, out, 1, stride, "conv."), batch_norm(out, "bn.", frozen))
    return found


class Classifier(HybridBlock):
    """Stem, blocks, global mean, dense layer: images (N, C, H, W) -> logits (N, classes)."""

    def __init__(self, first: HybridBlock, blocks: list[HybridBlock], channels: int, classes: int) -> None:
        super().__init__(prefix="")
        self.stem = first
        self.stages = nn.HybridSequential(prefix="")
        self.stages.add(*blocks)
        self.pool = nn.GlobalAvgPool2D()
        self.head = nn.Dense(classes, use_bias=True, flatten=True, in_units=channels, prefix="head.")

    def hybrid_forward(self, F: Any, image: Any) -> Any:
        return self.head(self.pool(self.stages(self.stem(image))))
