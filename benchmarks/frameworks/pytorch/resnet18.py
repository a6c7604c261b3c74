"""torchvision's ResNet-18 with the usual stem for small images: a 3x3 convolution in place of the 7x7 one."""

import torch
from torch import nn
from torch.nn import functional as F

SOURCE = "torchvision.models.resnet18 0.28.0, with the first convolution and the pool replaced for small images"
DIFFERS = ""


def model(sizes):
    """Return the network; the package has one width."""
    from torchvision.models import resnet18

    if sizes["width"] != 64:
        raise ValueError("torchvision has ResNet-18 at width 64 only.")
    found = resnet18(num_classes=sizes["classes"])
    found.conv1 = nn.Conv2d(sizes["channels"], 64, 3, padding=1, bias=False)
    found.maxpool = {"seed": nn.MaxPool2d(2), "cifar": nn.Identity()}[sizes["stem"]]
    return found


def inputs(batch):
    """Images (N, C, H, W) and labels."""
    return {"image": torch.from_numpy(batch["image"]), "label": torch.from_numpy(batch["label"]).long()}


def loss(model, batch):
    """Mean softmax cross-entropy."""
    return F.cross_entropy(model(batch["image"]), batch["label"])
