"""GoogLeNet in MindSpore: cells with the canonical names."""

from __future__ import annotations

from functools import partial
from typing import Any

from mindspore import Parameter, Tensor, nn, ops

from steelyard_worker.frameworks.mindspore import blocks, layers
from steelyard_worker.frameworks.mindspore.pooling import AdaptiveAveragePool, MaxPool

conv_block, branch = partial(blocks.ConvBlock, epsilon=1e-3), partial(blocks.branch, epsilon=1e-3)
# name: channels of 1x1; 1x1, 3x3; 1x1, 3x3 (or 5x5); after the pool, at width 64
INCEPTIONS = {
    "inception3a": (64, 96, 128, 16, 32, 32),
    "inception3b": (128, 128, 192, 32, 96, 64),
    "inception4a": (192, 96, 208, 16, 48, 64),
    "inception4b": (160, 112, 224, 24, 64, 64),
    "inception4c": (128, 128, 256, 24, 64, 64),
    "inception4d": (112, 144, 288, 32, 64, 64),
    "inception4e": (256, 160, 320, 32, 128, 128),
    "inception5a": (256, 160, 320, 32, 128, 128),
    "inception5b": (384, 192, 384, 48, 128, 128),
}


def inception(channels: int, counts: list[int], five_by_five: bool) -> nn.Cell:
    """Return four branches concatenated along the channels."""
    one, reduce3, three, reduce5, five, pool = counts
    last = (five, 5, 1, 2) if five_by_five else (five, 3, 1, 1)
    return blocks.Parallel(
        branch(channels, (one,)),
        branch(channels, (reduce3,), (three, 3, 1, 1)),
        branch(channels, (reduce5,), last),
        branch(channels, (pool,), pool=MaxPool(3, 1, 1)),
    )


class Head(nn.Cell):
    """Auxiliary head: average pool to 4x4, 1x1 block, two dense layers."""

    def __init__(self, channels: int, width: int, classes: int) -> None:
        super().__init__()
        self.pool, self.relu, self.flatten = AdaptiveAveragePool(4), nn.ReLU(), nn.Flatten()
        self.reduce = conv_block(channels, 2 * width)
        self.hidden = nn.Dense(2 * width * 16, 16 * width)
        self.head, self.dropout = nn.Dense(16 * width, classes), layers.dropout(0.7)

    def construct(self, x: Tensor) -> Tensor:
        return self.head(self.dropout(self.relu(self.hidden(self.flatten(self.reduce(self.pool(x)))))))


class Network(nn.Cell):
    """The network: images (N, C, H, W) -> logits (N, classes), and those of the auxiliary heads if there are any."""

    def __init__(self, sizes: dict[str, Any]) -> None:
        super().__init__()
        width = sizes["width"]
        self.conv1 = conv_block(sizes["channels"], width, 7, 2, 3)
        self.conv2 = conv_block(width, width)
        self.conv3 = conv_block(width, 3 * width, 3, 1, 1)
        self.pool3, self.pool2 = MaxPool(3, 2, ceil=True), MaxPool(2, 2, ceil=True)
        channels, self.aux = 3 * width, sizes["aux"]
        for name, counts in INCEPTIONS.items():
            scaled = [count * width // 64 for count in counts]
            self.insert_child_to_cell(name, inception(channels, scaled, sizes["five_by_five"]))
            channels = scaled[0] + scaled[2] + scaled[4] + scaled[5]
            if name in ("inception4a", "inception4d"):
                head = Head(channels, width, sizes["classes"]) if self.aux else nn.Identity()
                self.insert_child_to_cell("aux1" if name == "inception4a" else "aux2", head)
        self.head = nn.Dense(channels, sizes["classes"])
        self.dropout = layers.dropout(0.2)

    def construct(self, image: Tensor) -> tuple[Tensor, ...]:
        x = self.pool3(self.conv3(self.conv2(self.pool3(self.conv1(image)))))
        a = self.inception4a(self.pool3(self.inception3b(self.inception3a(x))))
        d = self.inception4d(self.inception4c(self.inception4b(a)))
        x = self.inception5b(self.inception5a(self.pool2(self.inception4e(d))))
        logits = self.head(self.dropout(ops.mean(x, (2, 3))))
        return (logits, self.aux1(a), self.aux2(d)) if self.aux else (logits,)


class Loss(nn.Cell):
    """Mean softmax cross-entropy from logits; each auxiliary head adds 0.3 times its own."""

    def __init__(self) -> None:
        super().__init__()
        self.each = layers.CrossEntropy()

    def construct(self, logits: Tensor, *more: Tensor) -> Tensor:
        label = more[-1]
        if len(more) == 1:
            return self.each(logits, label)
        return self.each(logits, label) + 0.3 * (self.each(more[0], label) + self.each(more[1], label))


INPUTS, TARGETS, OUTPUTS = ("image",), ("label",), ("logits", "aux1", "aux2")


def build(sizes: dict[str, Any]) -> nn.Cell:
    """Return the network; its weights are loaded later."""
    return Network(sizes)


def variables(network: nn.Cell) -> dict[str, Parameter]:
    """Map canonical names to parameters."""
    return layers.named_by_cell(network)


def loss() -> nn.Cell:
    """Mean softmax cross-entropy, auxiliary heads included."""
    return Loss()
