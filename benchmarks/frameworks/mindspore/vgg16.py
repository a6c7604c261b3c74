"""VGG-16 from MindCV."""

from mindcv.models.vgg import VGG
from mindspore import nn

SOURCE = "mindcv 0.3.0, models.vgg.VGG, with our widths of the dense layers and without dropout"
DIFFERS = "its convolutions have no biases"
MORE = -4_224


def model(sizes):
    """Return the network; the package has only width 64, without batch norm."""
    if sizes["width"] != 64 or sizes["batch_norm"] or sizes["freeze_backbone"]:
        raise SystemExit("MindCV has VGG-16 at width 64 only.")
    network = VGG("vgg16", in_channels=sizes["channels"])
    features, dense = 512 * (sizes["image"] // 32) ** 2, []
    for _ in range(2 if sizes["dense"] else 0):
        dense += [nn.Dense(features, sizes["dense"]), nn.ReLU()]
        features = sizes["dense"]
    network.classifier = nn.SequentialCell(*dense, nn.Dense(features, sizes["classes"]))
    return network


def inputs(batch):
    """Images."""
    return (batch["image"],)


def targets(batch):
    """Labels."""
    return (batch["label"],)


def loss():
    """Mean softmax cross-entropy from logits."""
    return nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean")
