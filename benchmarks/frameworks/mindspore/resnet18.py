"""ResNet-18 for small images from MindCV."""

from mindcv.models.resnet import BasicBlock, ResNet
from mindspore import nn

SOURCE = "mindcv 0.3.0, models.resnet.ResNet of BasicBlock, with a stem for small images"
DIFFERS = ""


def model(sizes):
    """Return the network: 3x3 stem with a 2x2 pool; the package has only width 64."""
    if sizes["width"] != 64:
        raise SystemExit("MindCV has ResNet-18 at width 64 only.")
    network = ResNet(BasicBlock, [2, 2, 2, 2], sizes["classes"], sizes["channels"])
    network.conv1 = nn.Conv2d(sizes["channels"], 64, 3, 1, pad_mode="pad", padding=1)
    network.max_pool = nn.MaxPool2d(2, 2)
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
