"""Parts of residual networks: convolutions, batch norms, stems, shortcuts, and the classifier around a body of blocks."""

from __future__ import annotations

from collections import OrderedDict

from mindspore import Tensor, nn, ops

from steelyard_worker.frameworks.mindspore.layers import freeze


def conv(channels: int, out: int, kernel: int, stride: int = 1) -> nn.Conv2d:
    """Return a bias-free convolution padded by half its kernel; the default `pad_mode` is 'same' (P-08)."""
    return nn.Conv2d(channels, out, kernel, stride, pad_mode="pad", padding=kernel // 2, has_bias=False)


def batch_norm(channels: int) -> nn.BatchNorm2d:
    """Return a batch norm; `momentum` is the weight of the old statistic here (P-01), the variance is unbiased (P-03)."""
    return nn.BatchNorm2d(channels, eps=1e-5, momentum=0.9)


def stem(channels: int, width: int, kind: str) -> nn.SequentialCell:
    """Return the stem named `seed`, `cifar` or `imagenet`."""
    large = kind == "imagenet"
    cells = OrderedDict(
        conv=conv(channels, width, 7, 2) if large else conv(channels, width, 3),
        bn=batch_norm(width),
        relu=nn.ReLU(),
    )
    if kind != "cifar":
        cells["pool"] = nn.MaxPool2d(3, 2, pad_mode="pad", padding=1) if large else nn.MaxPool2d(2, 2)
    return nn.SequentialCell(cells)


def shortcut(channels: int, out: int, stride: int) -> nn.Cell:
    """Return the shortcut of a block: the identity, or a projection where its shape changes."""
    if stride == 1 and channels == out:
        return nn.Identity()
    return nn.SequentialCell(OrderedDict(conv=conv(channels, out, 1, stride), bn=batch_norm(out)))


class Classifier(nn.Cell):
    """Stem, four stages of blocks, global mean, dense layer: images (N, C, H, W) -> logits (N, classes).

    `frozen`: only the dense layer is trained, and batch norms are in inference mode.
    """

    def __init__(self, first: nn.Cell, stages: list[list[nn.Cell]], head: nn.Dense, frozen: bool = False) -> None:
        super().__init__()
        self.stem = first
        for number, blocks in enumerate(stages, 1):
            named = OrderedDict((f"block{place}", block) for place, block in enumerate(blocks))
            self.insert_child_to_cell(f"stage{number}", nn.SequentialCell(named))
        if frozen:
            freeze(self)
        self.head = head

    def construct(self, image: Tensor) -> tuple[Tensor]:
        x = self.stage4(self.stage3(self.stage2(self.stage1(self.stem(image)))))
        return (self.head(ops.mean(x, (2, 3))),)
