"""torchvision's Inception v3."""

import torch
from torch.nn import functional as F

SOURCE = "torchvision.models.inception_v3 0.28.0"
DIFFERS = ""


def model(sizes):
    """Return the network without dropout; the package has one width."""
    from torchvision.models import Inception3

    if sizes["width"] != 32:
        raise ValueError("torchvision has Inception v3 at width 32 only.")
    return Inception3(sizes["classes"], sizes["aux"], init_weights=False, dropout=0.0)


def inputs(batch):
    """Images (N, C, H, W) and labels."""
    return {"image": torch.from_numpy(batch["image"]), "label": torch.from_numpy(batch["label"]).long()}


def loss(model, batch):
    """Mean softmax cross-entropy; the auxiliary head adds 0.4 of its loss."""
    found, label = model(batch["image"]), batch["label"]
    if not model.aux_logits:
        return F.cross_entropy(found, label)
    return F.cross_entropy(found.logits, label) + 0.4 * F.cross_entropy(found.aux_logits, label)
