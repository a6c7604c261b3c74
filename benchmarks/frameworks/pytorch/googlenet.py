"""torchvision's GoogLeNet, which has batch norm and 3x3 convolutions in the third branch."""

import torch
from torch.nn import functional as F

SOURCE = "torchvision.models.googlenet 0.28.0"
DIFFERS = ""


def model(sizes):
    """Return the network without dropout; the package has one width."""
    from torchvision.models import GoogLeNet

    if sizes["width"] != 64 or sizes["five_by_five"]:
        raise ValueError("torchvision has GoogLeNet at width 64 and without 5x5 convolutions only.")
    return GoogLeNet(sizes["classes"], sizes["aux"], init_weights=False, dropout=0.0, dropout_aux=0.0)


def inputs(batch):
    """Images (N, C, H, W) and labels."""
    return {"image": torch.from_numpy(batch["image"]), "label": torch.from_numpy(batch["label"]).long()}


def loss(model, batch):
    """Mean softmax cross-entropy; every auxiliary head adds 0.3 of its loss."""
    found, label = model(batch["image"]), batch["label"]
    if not model.aux_logits:
        return F.cross_entropy(found, label)
    first, second = F.cross_entropy(found.aux_logits1, label), F.cross_entropy(found.aux_logits2, label)
    return F.cross_entropy(found.logits, label) + 0.3 * (first + second)
