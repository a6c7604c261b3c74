"""The layers of torchvision's VGG-16 and a dense layer, with random weights, which it saves for the other side."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch


def build():
    from torchvision.models import vgg

    torch.manual_seed(0)
    model = torch.nn.Sequential(vgg.make_layers(vgg.cfgs["D"]), torch.nn.Flatten(), torch.nn.Linear(512 * 2 * 2, 6))
    with torch.no_grad():
        for module in model.modules():
            if isinstance(module, torch.nn.Conv2d):
                torch.nn.init.kaiming_normal_(module.weight)
                module.bias.normal_(0, 0.1)
    np.savez(Path(__file__).parent / "weights.npz", **{k: v.numpy() for k, v in model.state_dict().items()})
    return model
