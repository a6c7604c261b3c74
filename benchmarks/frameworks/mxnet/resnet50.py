"""ResNet-50 v1.5 from GluonCV."""

from pathlib import Path

from mxnet import gluon

from steelyard_worker.network import load

SOURCE = (
    "gluoncv 0.10.5, model_zoo.resnetv1b.ResNetV1b (the zoo of MXNet itself has v1, with biases), its file loaded by "
    "itself: the package asks for ten others"
)
DIFFERS = "its running variances are the biased ones"


def model(sizes):
    """Only width 64 and stride in the 3x3 are its builder's; others are refused."""
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
