"""Imports torchvision before processes of sides are forked, also where its build is for another device than PyTorch's."""

from __future__ import annotations

import torch

for name in ("nms", "qnms"):  # such a build lacks its own operators, which no network here needs
    torch.library.define(f"torchvision::{name}", "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")

import torchvision.models  # noqa: E402, F401  once the operators are defined
