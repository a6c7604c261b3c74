"""GoogLeNet with batch norm in MindSpore's cells, in the style of MindCV's Inception v3."""

from pathlib import Path

from mindspore import nn, ops

from steelyard_worker.network import load

SOURCE = (
    "written by hand from mindspore 2.10.0's nn.Conv2d, BatchNorm2d and MaxPool2d; mindcv 0.3.0's GoogLeNet is "
    "a different network, without batch norm and with 5x5 convolutions"
)
DIFFERS = ""

BLOCKS = load(Path(__file__).parent.parent, "published").GOOGLENET


def conv_norm(channels, out, kernel, stride=1):
    """Bias-free convolution padded by half its kernel, batch norm, ReLU."""
    conv = nn.Conv2d(channels, out, kernel, stride, pad_mode="pad", padding=kernel // 2)
    return nn.SequentialCell(conv, nn.BatchNorm2d(out, eps=1e-3, momentum=0.9), nn.ReLU())


class Inception(nn.Cell):
    """Four branches, concatenated in channels."""

    def __init__(self, channels, counts, third):
        super().__init__()
        one, reduce3, three, reduce5, five, pool = counts
        self.branch1 = conv_norm(channels, one, 1)
        self.branch2 = nn.SequentialCell(conv_norm(channels, reduce3, 1), conv_norm(reduce3, three, 3))
        self.branch3 = nn.SequentialCell(conv_norm(channels, reduce5, 1), conv_norm(reduce5, five, third))
        self.branch4 = nn.SequentialCell(nn.MaxPool2d(3, 1, pad_mode="same"), conv_norm(channels, pool, 1))

    def construct(self, x):
        """Concatenate channels."""
        return ops.concat((self.branch1(x), self.branch2(x), self.branch3(x), self.branch4(x)), 1)


class GoogLeNet(nn.Cell):
    """Stem, nine blocks, global average, dense layer."""

    def __init__(self, sizes):
        super().__init__()
        width, third = sizes["width"], 5 if sizes["five_by_five"] else 3
        cells = [
            conv_norm(sizes["channels"], width, 7, 2),
            nn.MaxPool2d(3, 2, pad_mode="same"),
            conv_norm(width, width, 1),
            conv_norm(width, 3 * width, 3),
            nn.MaxPool2d(3, 2, pad_mode="same"),
        ]
        channels = 3 * width
        for block in BLOCKS:
            if isinstance(block, int):
                cells.append(nn.MaxPool2d(block, 2, pad_mode="same"))
                continue
            counts = [count * width // 64 for count in block]
            cells.append(Inception(channels, counts, third))
            channels = counts[0] + counts[2] + counts[4] + counts[5]
        self.features = nn.SequentialCell(cells)
        self.head = nn.Dense(channels, sizes["classes"])

    def construct(self, x):
        """Images (N, C, H, W) -> logits."""
        return self.head(ops.mean(self.features(x), (2, 3)))


def model(sizes):
    """Return the network. It has no auxiliary heads, like all published presets."""
    if sizes["aux"]:
        raise SystemExit("This reference has no auxiliary heads.")
    return GoogLeNet(sizes)


def inputs(batch):
    """Images."""
    return (batch["image"],)


def targets(batch):
    """Labels."""
    return (batch["label"],)


def loss():
    """Mean softmax cross-entropy from logits."""
    return nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean")
