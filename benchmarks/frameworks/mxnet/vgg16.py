"""VGG-16 from Gluon's model zoo."""

from mxnet import gluon
from mxnet.gluon import nn
from mxnet.gluon.model_zoo import vision

SOURCE = "mxnet 1.9.1, gluon.model_zoo.vision.VGG, with our widths of the dense layers and without dropout"
DIFFERS = ""


def model(sizes):
    """The zoo's convolutions, without its two dense layers and their dropouts, then our dense layers."""
    if sizes["batch_norm"] or sizes["freeze_backbone"]:
        raise SystemExit("This reference has neither batch norm nor frozen convolutions.")
    filters = [sizes["width"] * factor for factor in (1, 2, 4, 8, 8)]
    network = nn.HybridSequential()
    network.add(*list(vision.VGG([2, 2, 3, 3, 3], filters).features)[:-4])
    for _ in range(2 if sizes["dense"] else 0):
        network.add(nn.Dense(sizes["dense"], activation="relu"))
    network.add(nn.Dense(sizes["classes"]))
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
