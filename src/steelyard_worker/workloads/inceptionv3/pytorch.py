"""Inception v3 in PyTorch: `torch.nn` modules with the canonical names."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from steelyard_worker.frameworks.pytorch import blocks, layers

EPSILON = 1e-3
WIDE, TALL = ((1, 7), 1, (0, 3)), ((7, 1), 1, (3, 0))


def conv_block(channels: int, *step: Any) -> blocks.ConvBlock:
    """Return convolution, batch norm, ReLU."""
    return blocks.ConvBlock(channels, *step, epsilon=EPSILON)


def branch(channels: int, *steps: tuple[Any, ...]) -> nn.Sequential:
    """Return blocks in sequence."""
    return blocks.branch(channels, *steps, epsilon=EPSILON)


def pooled_branch(channels: int, out: int) -> nn.Sequential:
    """Return a 3x3 average pool that counts its padding (P-12), then a 1x1 block."""
    return blocks.branch(channels, (out,), epsilon=EPSILON, pool=nn.AvgPool2d(3, 1, 1, count_include_pad=True))


class Parallel(nn.Module):
    """Branches named branch1 and so on, concatenated along the channels."""

    def __init__(self, *branches: nn.Module) -> None:
        super().__init__()
        for number, each in enumerate(branches, 1):
            self.add_module(f"branch{number}", each)

    def forward(self, x: Tensor) -> Tensor:
        return torch.cat([each(x) for each in self.children()], 1)


class Split(nn.Module):
    """A branch that ends in a 1x3 and a 3x1 block in parallel."""

    def __init__(self, channels: int, inner: int, *steps: tuple[Any, ...]) -> None:
        super().__init__()
        self.steps = len(steps)
        for name, step in branch(channels, *steps).named_children():
            self.add_module(name, step)
        self.wide = conv_block(inner, inner, (1, 3), 1, (0, 1))
        self.tall = conv_block(inner, inner, (3, 1), 1, (1, 0))

    def forward(self, x: Tensor) -> Tensor:
        x = self.step1(x) if self.steps == 1 else self.step2(self.step1(x))
        return torch.cat((self.wide(x), self.tall(x)), 1)


class Blocks:
    """The five kinds of blocks, by their channels at width 32."""

    def __init__(self, width: int) -> None:
        self._width = width

    def __call__(self, count: int) -> int:
        return count * self._width // 32

    def a(self, channels: int, pool: int) -> nn.Module:
        n48, n64, n96 = self(48), self(64), self(96)
        return Parallel(
            branch(channels, (n64,)),
            branch(channels, (n48,), (n64, 5, 1, 2)),
            branch(channels, (n64,), (n96, 3, 1, 1), (n96, 3, 1, 1)),
            pooled_branch(channels, self(pool)),
        )

    def b(self, channels: int) -> nn.Module:
        n96 = self(96)
        double = branch(channels, (self(64),), (n96, 3, 1, 1), (n96, 3, 2))
        return Parallel(branch(channels, (self(384), 3, 2)), double, nn.MaxPool2d(3, 2))

    def c(self, channels: int, inner: int) -> nn.Module:
        n192, wide, tall = self(192), (self(inner), *WIDE), (self(inner), *TALL)
        return Parallel(
            branch(channels, (n192,)),
            branch(channels, (self(inner),), wide, (n192, *TALL)),
            branch(channels, (self(inner),), tall, wide, tall, (n192, *WIDE)),
            pooled_branch(channels, n192),
        )

    def d(self, channels: int) -> nn.Module:
        n192 = self(192)
        long = branch(channels, (n192,), (n192, *WIDE), (n192, *TALL), (n192, 3, 2))
        return Parallel(branch(channels, (n192,), (self(320), 3, 2)), long, nn.MaxPool2d(3, 2))

    def e(self, channels: int) -> nn.Module:
        n384 = self(384)
        return Parallel(
            branch(channels, (self(320),)),
            Split(channels, n384, (n384,)),
            Split(channels, n384, (self(448),), (n384, 3, 1, 1)),
            pooled_branch(channels, self(192)),
        )


class Head(nn.Module):
    """Auxiliary head: 5x5 average pool at stride 3, 1x1 and 5x5 block, global average, dense layer."""

    def __init__(self, count: Blocks, classes: int) -> None:
        super().__init__()
        self.step1 = conv_block(count(768), count(128))
        self.step2 = conv_block(count(128), count(768), 5)
        self.head = nn.Linear(count(768), classes)

    def forward(self, x: Tensor) -> Tensor:
        x = self.step2(self.step1(F.avg_pool2d(x, 5, 3)))
        return self.head(torch.flatten(F.adaptive_avg_pool2d(x, 1), 1))


class Network(nn.Module):
    """The network: images (N, C, H, W) -> logits (N, classes), and those of the auxiliary head if there is one."""

    def __init__(self, sizes: dict[str, Any]) -> None:
        super().__init__()
        count = blocks = Blocks(sizes["width"])
        self.conv1 = conv_block(sizes["channels"], count(32), 3, 2)
        self.conv2 = conv_block(count(32), count(32), 3)
        self.conv3 = conv_block(count(32), count(64), 3, 1, 1)
        self.conv4 = conv_block(count(64), count(80))
        self.conv5 = conv_block(count(80), count(192), 3)
        self.a1, self.a2, self.a3 = blocks.a(count(192), 32), blocks.a(count(256), 64), blocks.a(count(288), 64)
        self.b = blocks.b(count(288))
        self.c1, self.c2, self.c3, self.c4 = (blocks.c(count(768), inner) for inner in (128, 160, 160, 192))
        self.aux = Head(count, sizes["classes"]) if sizes["aux"] else None
        self.d = blocks.d(count(768))
        self.e1, self.e2 = blocks.e(count(1280)), blocks.e(count(2048))
        self.pool = nn.MaxPool2d(3, 2)
        self.head = nn.Linear(count(2048), sizes["classes"])
        self.dropout = layers.dropout(0.5)

    def forward(self, image: Tensor) -> dict[str, Tensor]:
        x = self.pool(self.conv3(self.conv2(self.conv1(image))))
        x = self.pool(self.conv5(self.conv4(x)))
        x = self.b(self.a3(self.a2(self.a1(x))))
        x = c = self.c4(self.c3(self.c2(self.c1(x))))
        x = self.e2(self.e1(self.d(x)))
        outputs = {"logits": self.head(self.dropout(torch.flatten(F.adaptive_avg_pool2d(x, 1), 1)))}
        return outputs | {"aux": self.aux(c)} if self.aux is not None else outputs


INPUTS = ("image",)


def build(sizes: dict[str, Any]) -> nn.Module:
    """Return the network; its weights are loaded later."""
    return Network(sizes)


def variables(network: nn.Module) -> dict[str, Tensor]:
    """Map canonical names to parameters and buffers."""
    return layers.named_by_module(network)


def loss(outputs: dict[str, Tensor], batch: dict[str, Tensor]) -> Tensor:
    """Mean softmax cross-entropy from logits; the auxiliary head adds 0.4 times its own."""
    each = {name: F.cross_entropy(logits, batch["label"]) for name, logits in outputs.items()}
    return each["logits"] + 0.4 * each["aux"] if "aux" in each else each["logits"]
