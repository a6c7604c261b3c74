"""ResNet of torchvision with one bottleneck in each of its stages, with random weights, which it saves for the other side."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch


def build(original=True, frozen=True):
    """Return the network; `original`: strides in the first convolution of a block, as in Keras and in the paper.

    `frozen`: norms are not trained, as in fine-tuning: both libraries update running statistics in other ways.
    """
    from torchvision.models.resnet import Bottleneck, ResNet

    torch.manual_seed(0)
    model = ResNet(Bottleneck, [1, 1, 1, 1], num_classes=7)
    for module in model.modules():
        if isinstance(module, torch.nn.BatchNorm2d):
            with torch.no_grad():
                module.weight.uniform_(0.5, 1.5)
                module.bias.normal_(0, 0.2)
                module.running_mean.normal_(0, 0.2)
                module.running_var.uniform_(0.5, 1.5)
            module.eps = 1.001e-5 if original else module.eps
            if frozen:
                freeze(module)
        if original and isinstance(module, Bottleneck):
            module.conv1.stride, module.conv2.stride = module.conv2.stride, (1, 1)
    np.savez(Path(__file__).parent / "weights.npz", **{k: v.numpy() for k, v in model.state_dict().items()})
    return model


def freeze(norm):
    """Keep a norm in evaluation mode."""
    norm.requires_grad_(False)
    norm.train = lambda mode=True: norm
    norm.training = False
