"""Inception v3 in MindSpore: cells with the canonical names."""

from __future__ import annotations

from functools import partial
from typing import Any

from mindspore import Parameter, Tensor, nn, ops

from steelyard_worker.frameworks.mindspore import blocks, layers
from steelyard_worker.frameworks.mindspore.blocks import Parallel
from steelyard_worker.frameworks.mindspore.pooling import AveragePool, MaxPool

conv_block, branch = partial(blocks.ConvBlock, epsilon=1e-3), partial(blocks.branch, epsilon=1e-3)
WIDE, TALL = ((1, 7), 1, (0, 3)), ((7, 1), 1, (3, 0))


class Split(nn.Cell):
    """A branch of one or two steps that ends in a 1x3 and a 3x1 block in parallel."""

    def __init__(self, channels: int, inner: int, *steps: tuple[Any, ...]) -> None:
        super().__init__()
        self.step1, self.step2 = conv_block(channels, *steps[0]), nn.Identity()
        if len(steps) > 1:
            self.step2 = conv_block(steps[0][0], *steps[1])
        self.wide = conv_block(inner, inner, (1, 3), 1, (0, 1))
        self.tall = conv_block(inner, inner, (3, 1), 1, (1, 0))

    def construct(self, x: Tensor) -> Tensor:
        x = self.step2(self.step1(x))
        return ops.concat((self.wide(x), self.tall(x)), 1)


class Blocks:
    """The five kinds of blocks, by their channels at width 32."""

    def __init__(self, width: int) -> None:
        self._width = width

    def __call__(self, count: int) -> int:
        return count * self._width // 32

    def a(self, channels: int, pool: int) -> nn.Cell:
        n48, n64, n96 = self(48), self(64), self(96)
        return Parallel(
            branch(channels, (n64,)),
            branch(channels, (n48,), (n64, 5, 1, 2)),
            branch(channels, (n64,), (n96, 3, 1, 1), (n96, 3, 1, 1)),
            branch(channels, (self(pool),), pool=AveragePool(3, 1, 1)),
        )

    def b(self, channels: int) -> nn.Cell:
        n96 = self(96)
        double = branch(channels, (self(64),), (n96, 3, 1, 1), (n96, 3, 2))
        return Parallel(branch(channels, (self(384), 3, 2)), double, MaxPool(3, 2))

    def c(self, channels: int, inner: int) -> nn.Cell:
        n192, wide, tall = self(192), (self(inner), *WIDE), (self(inner), *TALL)
        return Parallel(
            branch(channels, (n192,)),
            branch(channels, (self(inner),), wide, (n192, *TALL)),
            branch(channels, (self(inner),), tall, wide, tall, (n192, *WIDE)),
            branch(channels, (n192,), pool=AveragePool(3, 1, 1)),
        )

    def d(self, channels: int) -> nn.Cell:
        n192 = self(192)
        long = branch(channels, (n192,), (n192, *WIDE), (n192, *TALL), (n192, 3, 2))
        return Parallel(branch(channels, (n192,), (self(320), 3, 2)), long, MaxPool(3, 2))

    def e(self, channels: int) -> nn.Cell:
        n384 = self(384)
        return Parallel(
            branch(channels, (self(320),)),
            Split(channels, n384, (n384,)),
            Split(channels, n384, (self(448),), (n384, 3, 1, 1)),
            branch(channels, (self(192),), pool=AveragePool(3, 1, 1)),
        )


class Head(nn.Cell):
    """Auxiliary head: 5x5 average pool at stride 3, 1x1 and 5x5 block, global average, dense layer."""

    def __init__(self, count: Blocks, classes: int) -> None:
        super().__init__()
        self.pool = AveragePool(5, 3)
        self.step1 = conv_block(count(768), count(128))
        self.step2 = conv_block(count(128), count(768), 5)
        self.head = nn.Dense(count(768), classes)

    def construct(self, x: Tensor) -> Tensor:
        return self.head(ops.mean(self.step2(self.step1(self.pool(x))), (2, 3)))


class Network(nn.Cell):
    """The network: images (N, C, H, W) -> logits (N, classes), and those of the auxiliary head if there is one."""

    def __init__(self, sizes: dict[str, Any]) -> None:
        super().__init__()
        count = make = Blocks(sizes["width"])
        self.conv1 = conv_block(sizes["channels"], count(32), 3, 2)
        self.conv2 = conv_block(count(32), count(32), 3)
        self.conv3 = conv_block(count(32), count(64), 3, 1, 1)
        self.conv4 = conv_block(count(64), count(80))
        self.conv5 = conv_block(count(80), count(192), 3)
        self.pool = MaxPool(3, 2)
        self.a1, self.a2, self.a3 = make.a(count(192), 32), make.a(count(256), 64), make.a(count(288), 64)
        self.b = make.b(count(288))
        self.c1, self.c2, self.c3, self.c4 = (make.c(count(768), inner) for inner in (128, 160, 160, 192))
        self.has_aux = sizes["aux"]
        self.aux = Head(count, sizes["classes"]) if self.has_aux else nn.Identity()
        self.d = make.d(count(768))
        self.e1, self.e2 = make.e(count(1280)), make.e(count(2048))
        self.head = nn.Dense(count(2048), sizes["classes"])
        self.dropout = layers.dropout(0.5)

    def construct(self, image: Tensor) -> tuple[Tensor, ...]:
        x = self.pool(self.conv3(self.conv2(self.conv1(image))))
        x = self.pool(self.conv5(self.conv4(x)))
        c = self.c4(self.c3(self.c2(self.c1(self.b(self.a3(self.a2(self.a1(x))))))))
        logits = self.head(self.dropout(ops.mean(self.e2(self.e1(self.d(c))), (2, 3))))
        return (logits, self.aux(c)) if self.has_aux else (logits,)


class Loss(nn.Cell):
    """Mean softmax cross-entropy from logits; the auxiliary head adds 0.4 times its own."""

    def __init__(self) -> None:
        super().__init__()
        self.each = layers.CrossEntropy()

    def construct(self, logits: Tensor, *more: Tensor) -> Tensor:
        label = more[-1]
        if len(more) == 1:
            return self.each(logits, label)
        return self.each(logits, label) + 0.4 * self.each(more[0], label)


INPUTS, TARGETS, OUTPUTS = ("image",), ("label",), ("logits", "aux")


def build(sizes: dict[str, Any]) -> nn.Cell:
    """Return the network; its weights are loaded later."""
    return Network(sizes)


def variables(network: nn.Cell) -> dict[str, Parameter]:
    """Map canonical names to parameters."""
    return layers.named_by_cell(network)


def loss() -> nn.Cell:
    """Mean softmax cross-entropy, the auxiliary head included."""
    return Loss()
