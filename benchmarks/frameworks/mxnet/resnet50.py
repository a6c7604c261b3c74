"""ResNet-50 v1.5 from GluonCV."""

from pathlib import Path

from mxnet import gluon

from steelyard_worker.network import load

SOURCE = (
    "gluoncv 0.10.5, model_zoo.resnetv1b.ResNetV1b (MXNet's own zoo has v1, with biases), its file loaded "
    "alone, because the package requires ten others"
)
DIFFERS = "biased running variances"


def model(sizes):
    """Return the network; the package has only width 64, with the stride in the 3x3 convolution."""
    if sizes["width"] != 64 or sizes["variant"] != "v1.5" or sizes["freeze_backbone"]:
        raise SystemExit("GluonCV has ResNet-50 v1.5 at width 64 only.")
    zoo = load(Path(__file__).parent, "zoo").gluoncv("resnetv1b")
    return zoo.ResNetV1b(zoo.BottleneckV1b, list(sizes["blocks"]), sizes["classes"])


def inputs(batch):
    """Images."""
    return (batch["image"],)


def targets(batch):
    """Labels."""
    return (batch["label"],)


def loss():
    """Softmax cross-entropy of each sample."""
    return gluon.loss.SoftmaxCrossEntropyLoss()
