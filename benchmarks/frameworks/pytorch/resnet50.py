"""torchvision's ResNet-50, which is v1.5: the stride is in the 3x3 convolution."""

import torch
from torch.nn import functional as F

SOURCE = "torchvision.models.resnet50 0.28.0"
DIFFERS = ""


def model(sizes):
    """Return the network; the package has one width, and the stride in one place only."""
    from torchvision.models.resnet import Bottleneck, ResNet

    if sizes["width"] != 64 or sizes["variant"] != "v1.5" or sizes["freeze_backbone"]:
        raise ValueError("torchvision has ResNet-50 at width 64 and as v1.5 only; a frozen body is not supported.")
    return ResNet(Bottleneck, sizes["blocks"], num_classes=sizes["classes"])


def inputs(batch):
    """Images (N, C, H, W) and labels."""
    return {"image": torch.from_numpy(batch["image"]), "label": torch.from_numpy(batch["label"]).long()}


def loss(model, batch):
    """Mean softmax cross-entropy."""
    return F.cross_entropy(model(batch["image"]), batch["label"])
