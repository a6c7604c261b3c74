"""ResNet-50 from MindCV."""

from mindcv.models.resnet import Bottleneck, ResNet
from mindspore import nn

SOURCE = "mindcv 0.3.0, models.resnet.ResNet of Bottleneck"
DIFFERS = "the stem's max pool is padded at the far edges only"


def model(sizes):
    """Return the network; the package has only width 64, with the stride in the 3x3 convolution."""
    if sizes["width"] != 64 or sizes["variant"] != "v1.5" or sizes["freeze_backbone"]:
        raise SystemExit("MindCV has ResNet-50 v1.5 at width 64 only.")
    return ResNet(Bottleneck, list(sizes["blocks"]), sizes["classes"], sizes["channels"])


def inputs(batch):
    """Images."""
    return (batch["image"],)


def targets(batch):
    """Labels."""
    return (batch["label"],)


def loss():
    """Mean softmax cross-entropy from logits."""
    return nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean")
