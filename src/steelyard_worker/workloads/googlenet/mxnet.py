"""GoogLeNet in MXNet: Gluon blocks whose prefixes give the parameters their canonical names."""

from __future__ import annotations

from functools import partial
from typing import Any

from mxnet import gluon
from mxnet.gluon import HybridBlock, nn

from steelyard_worker.frameworks.mxnet import blocks, layers

conv_block, branch = partial(blocks.ConvBlock, epsilon=1e-3), partial(blocks.Branch, epsilon=1e-3)
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


def inception(name: str, channels: int, counts: list[int], five_by_five: bool) -> HybridBlock:
    """Return four branches concatenated along the channels."""
    one, reduce3, three, reduce5, five, pool = counts
    last = (five, 5, 1, 2) if five_by_five else (five, 3, 1, 1)
    return blocks.Parallel(
        branch(f"{name}.branch1.", channels, (one,)),
        branch(f"{name}.branch2.", channels, (reduce3,), (three, 3, 1, 1)),
        branch(f"{name}.branch3.", channels, (reduce5,), last),
        branch(f"{name}.branch4.", channels, (pool,), pool=nn.MaxPool2D(3, 1, 1)),
    )


class Head(HybridBlock):
    """Auxiliary head: average pool to 4x4, 1x1 block, two dense layers."""

    def __init__(self, prefix: str, channels: int, width: int, classes: int) -> None:
        super().__init__(prefix=prefix)
        with self.name_scope():
            self.reduce = conv_block("reduce.", channels, 2 * width)
            self.hidden = nn.Dense(16 * width, in_units=2 * width * 16, prefix="hidden.")
            self.dropout = layers.dropout(0.7)
            self.head = nn.Dense(classes, in_units=16 * width, prefix="head.")

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        x = self.reduce(F.contrib.AdaptiveAvgPooling2D(x, output_size=4))
        return self.head(self.dropout(F.Activation(self.hidden(x), act_type="relu")))


class Network(HybridBlock):
    """The network: images (N, C, H, W) -> logits (N, classes), and those of the auxiliary heads if there are any."""

    def __init__(self, sizes: dict[str, Any]) -> None:
        super().__init__(prefix="")
        width = sizes["width"]
        self.stem, self.parts, self.heads = nn.HybridSequential(prefix=""), [], {}
        self.stem.add(
            conv_block("conv1.", sizes["channels"], width, 7, 2, 3),
            nn.MaxPool2D(3, 2, ceil_mode=True),
            conv_block("conv2.", width, width),
            conv_block("conv3.", width, 3 * width, 3, 1, 1),
            nn.MaxPool2D(3, 2, ceil_mode=True),
        )
        channels = 3 * width
        for name, counts in INCEPTIONS.items():
            scaled = [count * width // 64 for count in counts]
            self._append(inception(name, channels, scaled, sizes["five_by_five"]))
            channels = scaled[0] + scaled[2] + scaled[4] + scaled[5]
            if sizes["aux"] and name in ("inception4a", "inception4d"):
                aux = "aux1" if name == "inception4a" else "aux2"
                self.heads[len(self.parts)] = Head(f"{aux}.", channels, width, sizes["classes"])
                self.register_child(self.heads[len(self.parts)])
            if name in ("inception3b", "inception4e"):
                self._append(nn.MaxPool2D(3 if name == "inception3b" else 2, 2, ceil_mode=True))
        self.pool = nn.GlobalAvgPool2D()
        self.dropout = layers.dropout(0.2)
        self.head = nn.Dense(sizes["classes"], in_units=channels, prefix="head.")

    def _append(self, part: HybridBlock) -> None:
        self.parts.append(part)
        self.register_child(part)

    def hybrid_forward(self, F: Any, image: Any) -> Any:
        x, aux = self.stem(image), []
        for done, part in enumerate(self.parts, 1):
            x = part(x)
            if done in self.heads:
                aux.append(self.heads[done](x))
        logits = self.head(self.dropout(self.pool(x)))
        return (logits, *aux) if aux else logits


class Loss(HybridBlock):
    """Mean softmax cross-entropy from logits; each auxiliary head adds 0.3 times its own."""

    def __init__(self) -> None:
        super().__init__()
        self.each = layers.CrossEntropy()

    def hybrid_forward(self, F: Any, logits: Any, *more: Any) -> Any:
        *aux, label = more
        found = self.each(logits, label)
        return found + 0.3 * (self.each(aux[0], label) + self.each(aux[1], label)) if aux else found


INPUTS, TARGETS, OUTPUTS = ("image",), ("label",), ("logits", "aux1", "aux2")


def build(sizes: dict[str, Any]) -> HybridBlock:
    """Return the network; its weights are loaded later."""
    return Network(sizes)


def variables(network: HybridBlock) -> dict[str, gluon.Parameter]:
    """Map canonical names to parameters and statistics."""
    return dict(network.collect_params())


def loss() -> HybridBlock:
    """Mean softmax cross-entropy, auxiliary heads included."""
    return Loss()
