"""Inception v3 from MindCV."""

from mindcv.models.inceptionv3 import InceptionV3
from mindspore import nn

SOURCE = "mindcv 0.3.0, models.inceptionv3.InceptionV3 without auxiliary head and dropout"
DIFFERS = "average pools exclude padding from the divisor; the running statistics' momentum is 0.9997"


def model(sizes):
    """Return the network; only width 32 without the auxiliary head is supported."""
    if sizes["width"] != 32 or sizes["aux"]:
        raise SystemExit("MindCV has Inception v3 at width 32 only, and this reference has no auxiliary head.")
    return InceptionV3(sizes["classes"], aux_logits=False, in_channels=sizes["channels"], drop_rate=0.0)


def inputs(batch):
    """Images."""
    return (batch["image"],)


def targets(batch):
    """Labels."""
    return (batch["label"],)


def loss():
    """Mean softmax cross-entropy from logits."""
    return nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean")
