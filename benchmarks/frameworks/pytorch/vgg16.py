"""torchvision's VGG-16; other image sizes than 224 pixels and narrower networks use its convolutions with a head that fits."""

import torch
from torch import nn
from torch.nn import functional as F

SOURCE = "torchvision.models.vgg16 0.28.0; the head is rebuilt if image, width or dense layers differ from the published ones"
DIFFERS = ""


def model(sizes):
    """Return the network without dropout."""
    from torchvision.models import vgg

    if sizes["batch_norm"] or sizes["freeze_backbone"]:
        raise ValueError("torchvision's VGG-16 with batch norm has biases before it; a frozen body is not supported.")
    if (sizes["channels"], sizes["image"], sizes["width"], sizes["dense"]) == (3, 224, 64, 4096):
        return vgg.vgg16(num_classes=sizes["classes"], dropout=0.0, init_weights=False)
    # The package's own configuration "D", with the pools between the stages.
    widths = [width if width == "M" else width * sizes["width"] // 64 for width in vgg.cfgs["D"]]
    body = vgg.make_layers(widths)
    features, head = widths[-2] * (sizes["image"] // 32) ** 2, []
    for _ in range(2 if sizes["dense"] else 0):
        head += [nn.Linear(features, sizes["dense"]), nn.ReLU(inplace=True)]
        features = sizes["dense"]
    return nn.Sequential(body, nn.Flatten(), *head, nn.Linear(features, sizes["classes"]))


def inputs(batch):
    """Images (N, C, H, W) and labels."""
    return {"image": torch.from_numpy(batch["image"]), "label": torch.from_numpy(batch["label"]).long()}


def loss(model, batch):
    """Mean softmax cross-entropy."""
    return F.cross_entropy(model(batch["image"]), batch["label"])
