"""Inception v3 in MXNet: Gluon blocks whose prefixes give the parameters their canonical names."""

from __future__ import annotations

from functools import partial
from typing import Any

from mxnet import gluon
from mxnet.gluon import HybridBlock, nn

from steelyard_worker.frameworks.mxnet import blocks, layers
from steelyard_worker.frameworks.mxnet.blocks import Parallel

conv_block, branch = partial(blocks.ConvBlock, epsilon=1e-3), partial(blocks.Branch, epsilon=1e-3)
WIDE, TALL = ((1, 7), 1, (0, 3)), ((7, 1), 1, (3, 0))


def average_pool() -> nn.AvgPool2D:
    """Return a 3x3 average that counts its padding (P-12)."""
    return nn.AvgPool2D(3, 1, 1, count_include_pad=True)


class Blocks:
    """The five kinds of blocks, by their channels at width 32."""

    def __init__(self, width: int) -> None:
        self._width = width

    def __call__(self, count: int) -> int:
        return count * self._width // 32

    def a(self, name: str, channels: int, pool: int) -> HybridBlock:
        n48, n64, n96 = self(48), self(64), self(96)
        return Parallel(
            branch(f"{name}.branch1.", channels, (n64,)),
            branch(f"{name}.branch2.", channels, (n48,), (n64, 5, 1, 2)),
            branch(f"{name}.branch3.", channels, (n64,), (n96, 3, 1, 1), (n96, 3, 1, 1)),
            branch(f"{name}.branch4.", channels, (self(pool),), pool=average_pool()),
        )

    def b(self, name: str, channels: int) -> HybridBlock:
        n96 = self(96)
        double = branch(f"{name}.branch2.", channels, (self(64),), (n96, 3, 1, 1), (n96, 3, 2))
        return Parallel(branch(f"{name}.branch1.", channels, (self(384), 3, 2)), double, nn.MaxPool2D(3, 2))

    def c(self, name: str, channels: int, inner: int) -> HybridBlock:
        n192, wide, tall = self(192), (self(inner), *WIDE), (self(inner), *TALL)
        return Parallel(
            branch(f"{name}.branch1.", channels, (n192,)),
            branch(f"{name}.branch2.", channels, (self(inner),), wide, (n192, *TALL)),
            branch(f"{name}.branch3.", channels, (self(inner),), tall, wide, tall, (n192, *WIDE)),
            branch(f"{name}.branch4.", channels, (n192,), pool=average_pool()),
        )

    def d(self, name: str, channels: int) -> HybridBlock:
        n192 = self(192)
        long = branch(f"{name}.branch2.", channels, (n192,), (n192, *WIDE), (n192, *TALL), (n192, 3, 2))
        return Parallel(branch(f"{name}.branch1.", channels, (n192,), (self(320), 3, 2)), long, nn.MaxPool2D(3, 2))

    def e(self, name: str, channels: int) -> HybridBlock:
        n384 = self(384)
        return Parallel(
            branch(f"{name}.branch1.", channels, (self(320),)),
            self._split(f"{name}.branch2.", channels, (n384,)),
            self._split(f"{name}.branch3.", channels, (self(448),), (n384, 3, 1, 1)),
            branch(f"{name}.branch4.", channels, (self(192),), pool=average_pool()),
        )

    def _split(self, prefix: str, channels: int, *steps: tuple[Any, ...]) -> HybridBlock:
        """A branch that ends in a 1x3 and a 3x1 block in parallel."""
        found, n384 = branch(prefix, channels, *steps), self(384)
        wide = conv_block(f"{prefix}wide.", n384, n384, (1, 3), 1, (0, 1))
        found.add(Parallel(wide, conv_block(f"{prefix}tall.", n384, n384, (3, 1), 1, (1, 0))))
        return found


class Head(HybridBlock):
    """Auxiliary head: 5x5 average pool at stride 3, 1x1 and 5x5 block, global average, dense layer."""

    def __init__(self, count: Blocks, classes: int) -> None:
        super().__init__(prefix="")
        self.steps = branch("aux.", count(768), (count(128),), (count(768), 5), pool=nn.AvgPool2D(5, 3))
        self.pool = nn.GlobalAvgPool2D()
        self.head = nn.Dense(classes, in_units=count(768), prefix="aux.head.")

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        return self.head(self.pool(self.steps(x)))


class Network(HybridBlock):
    """The network: images (N, C, H, W) -> logits (N, classes), and those of the auxiliary head if there is one."""

    def __init__(self, sizes: dict[str, Any]) -> None:
        super().__init__(prefix="")
        count = make = Blocks(sizes["width"])
        self.first, self.last = nn.HybridSequential(prefix=""), nn.HybridSequential(prefix="")
        self.first.add(
            conv_block("conv1.", sizes["channels"], count(32), 3, 2),
            conv_block("conv2.", count(32), count(32), 3),
            conv_block("conv3.", count(32), count(64), 3, 1, 1),
            nn.MaxPool2D(3, 2),
            conv_block("conv4.", count(64), count(80)),
            conv_block("conv5.", count(80), count(192), 3),
            nn.MaxPool2D(3, 2),
            *(make.a(f"a{i}", count(width), pool) for i, width, pool in ((1, 192, 32), (2, 256, 64), (3, 288, 64))),
            make.b("b", count(288)),
            *(make.c(f"c{i}", count(768), inner) for i, inner in enumerate((128, 160, 160, 192), 1)),
        )
        self.aux = Head(count, sizes["classes"]) if sizes["aux"] else None
        self.last.add(
            make.d("d", count(768)), make.e("e1", count(1280)), make.e("e2", count(2048)), nn.GlobalAvgPool2D()
        )
        self.dropout = layers.dropout(0.5)
        self.head = nn.Dense(sizes["classes"], in_units=count(2048), prefix="head.")

    def hybrid_forward(self, F: Any, image: Any) -> Any:
        x = self.first(image)
        logits = self.head(self.dropout(self.last(x)))
        return (logits, self.aux(x)) if self.aux is not None else logits


class Loss(HybridBlock):
    """Mean softmax cross-entropy from logits; the auxiliary head adds 0.4 times its own."""

    def __init__(self) -> None:
        super().__init__()
        self.each = layers.CrossEntropy()

    def hybrid_forward(self, F: Any, logits: Any, *more: Any) -> Any:
        *aux, label = more
        found = self.each(logits, label)
        return found + 0.4 * self.each(aux[0], label) if aux else found


INPUTS, TARGETS, OUTPUTS = ("image",), ("label",), ("logits", "aux")


def build(sizes: dict[str, Any]) -> HybridBlock:
    """Return the network; its weights are loaded later."""
    return Network(sizes)


def variables(network: HybridBlock) -> dict[str, gluon.Parameter]:
    """Map canonical names to parameters and statistics."""
    return dict(network.collect_params())


def loss() -> HybridBlock:
    """Mean softmax cross-entropy, the auxiliary head included."""
    return Loss()
