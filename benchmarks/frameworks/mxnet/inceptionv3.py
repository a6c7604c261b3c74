"""Inception v3 from Gluon's model zoo."""

from mxnet import gluon
from mxnet.gluon.model_zoo import vision

SOURCE = "mxnet 1.9.1, gluon.model_zoo.vision.Inception3 without dropout"
DIFFERS = "biased running variances"


def model(sizes):
    """Return the network; the package has only width 32 at 299 pixels, without the auxiliary head."""
    if (sizes["width"], sizes["image"], sizes["aux"]) != (32, 299, False):
        raise SystemExit("Gluon's model zoo has Inception v3 at width 32 for 299 pixels only.")
    network = vision.Inception3(classes=sizes["classes"])
    network.features[-1]._rate = 0.0
    return network


def inputs(batch):
    """Images."""
    return (batch["image"],)


def targets(batch):
    """Labels."""
    return (batch["label"],)


def loss():
    """Softmax cross-entropy of each sample."""
    return gluon.loss.SoftmaxCrossEntropyLoss()
