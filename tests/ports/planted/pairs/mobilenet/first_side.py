"""The first blocks of a MobileNetV2 of torchvision, and pictures prepared by its transforms; the other side gets the weights."""

from __future__ import annotations

from pathlib import Path

import torch

MEAN, DEVIATION = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
BLOCKS = [[1, 16, 1, 1], [6, 24, 2, 2]]
"""Expansion, channels, number and stride of the first blocks; the others are left out."""


def build():
    from torchvision.models import mobilenet_v2

    torch.manual_seed(0)
    model = mobilenet_v2(num_classes=5, width_mult=0.25, inverted_residual_setting=BLOCKS)
    for module in model.modules():
        if isinstance(module, torch.nn.BatchNorm2d):
            with torch.no_grad():
                module.weight.uniform_(0.5, 1.5)
                module.bias.normal_(0, 0.2)
                module.running_mean.normal_(0, 0.2)
                module.running_var.uniform_(0.5, 1.5)
    torch.save(model.state_dict(), Path(__file__).parent / "weights.pt")
    return model


def loss(outputs, batch):
    return torch.nn.functional.cross_entropy(outputs, batch["y"])


def optimizer(model):
    return torch.optim.RMSprop(model.parameters(), lr=1e-3)


def batches():
    from torchvision.transforms import Normalize

    pictures = torch.randint(0, 256, (24, 3, 8, 8), generator=torch.Generator().manual_seed(0))
    labels = torch.arange(24) % 5
    prepared = Normalize(MEAN, DEVIATION)(pictures / 255)
    return torch.utils.data.DataLoader(torch.utils.data.TensorDataset(prepared, labels), batch_size=8)
