"""ResNet-18 for small images from the basic blocks of Gluon's model zoo."""

from mxnet import gluon
from mxnet.gluon import nn
from mxnet.gluon.model_zoo import vision

SOURCE = "mxnet 1.9.1, gluon.model_zoo.vision.ResNetV1 of BasicBlockV1, with a stem for small images"
DIFFERS = "biased running variances"


def model(sizes):
    """3x3 stem with batch norm and a 2x2 pool instead of the zoo's 3x3 convolution alone."""
    width = sizes["width"]
    zoo = vision.ResNetV1(
        vision.BasicBlockV1,
        [2, 2, 2, 2],
        [width, width, 2 * width, 4 * width, 8 * width],
        sizes["classes"],
        thumbnail=True,
    )
    network = nn.HybridSequential()
    network.add(*list(zoo.features)[:1], nn.BatchNorm(), nn.Activation("relu"), nn.MaxPool2D(2, 2))
    network.add(*list(zoo.features)[1:], zoo.output)
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
