"""ResNet-50 v1.5 from GluonCV."""

import importlib.util
from pathlib import Path

from mxnet import gluon

SOURCE = (
    "gluoncv 0.10.5, model_zoo.resnetv1b.ResNetV1b (the zoo of MXNet itself has v1, with biases), its file loaded by "
    "itself: the package asks for ten others"
)
DIFFERS = "its running variances are the biased ones"


def model(sizes):
    """Only width 64 and stride in the 3x3 are its builder's; others are refused."""
    if sizes["width"] != 64 or sizes["variant"] != "v1.5" or sizes["freeze_backbone"]:
        raise SystemExit("GluonCV has ResNet-50 v1.5 at width 64 only.")
    zoo = gluoncv("resnetv1b")
    return zoo.ResNetV1b(zoo.BottleneckV1b, list(sizes["blocks"]), sizes["classes"])


def gluoncv(name):
    """Load one file of GluonCV's model zoo."""
    path = Path(importlib.util.find_spec("gluoncv").origin).parent / "model_zoo" / f"{name}.py"
    spec = importlib.util.spec_from_file_location(f"gluoncv_{name}", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def inputs(batch):
    """Images."""
    return (batch["image"],)


def targets(batch):
    """Labels."""
    return (batch["label"],)


def loss():
    """Softmax cross-entropy of each sample."""
    return gluon.loss.SoftmaxCrossEntropyLoss()
