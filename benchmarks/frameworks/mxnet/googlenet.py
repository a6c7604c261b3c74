"""GoogLeNet with batch norm from GluonCV."""

from pathlib import Path

from mxnet import gluon

from steelyard_worker.network import load

SOURCE = (
    "gluoncv 0.10.5, model_zoo.googlenet.GoogLeNet without dropout, its file loaded alone, because the package requires "
    "ten others"
)
DIFFERS = "biased running variances"


def model(sizes):
    """Return the network; the package has only width 64 at 224 pixels, with 3x3 convolutions in the third branch."""
    if (sizes["width"], sizes["image"], sizes["five_by_five"], sizes["aux"]) != (64, 224, False, False):
        raise SystemExit("GluonCV has GoogLeNet at width 64 for 224 pixels only.")
    return load(Path(__file__).parent, "zoo").gluoncv("googlenet").GoogLeNet(sizes["classes"], dropout_ratio=0.0)


def inputs(batch):
    """Images."""
    return (batch["image"],)


def targets(batch):
    """Labels."""
    return (batch["label"],)


def loss():
    """Softmax cross-entropy of each sample."""
    return gluon.loss.SoftmaxCrossEntropyLoss()
