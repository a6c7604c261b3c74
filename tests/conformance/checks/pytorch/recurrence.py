"""What the PyTorch adapter relies on: recurrent layers."""

from dataclasses import replace

import numpy as np
import torch

from checks.pytorch.shared import KNOBS
from steelyard_worker.case import Settings
from steelyard_worker.frameworks.pytorch import recurrent
from steelyard_worker.frameworks.pytorch import settings as process


def check_the_implementations_of_an_lstm_agree_and_are_told_apart():
    """Outputs and gradients in float64 of two layers in both directions, batch first, with and without the compiler."""
    found, state = {}, None
    for mode, kind in (
        ("eager", "fused"),
        ("eager", "cell"),
        ("eager", "loop"),
        ("compiled", "cell"),
        ("compiled", "loop"),
    ):
        settings = Settings(mode, precision="float64", knobs=KNOBS | {"lstm": kind})
        assert process.read_back(replace(settings, mode="eager"))["lstm"] == kind
        lstm = recurrent.Lstm(3, 4, 2, batch_first=True, bidirectional=True)
        state = state or lstm.double().state_dict()
        lstm.load_state_dict(state)
        lstm = process.placed(lstm, settings)
        x = torch.linspace(-2, 2, 30, dtype=torch.float64).view(2, 5, 3).requires_grad_()
        y = lstm(x)
        y.sin().sum().backward()
        trained = [p.grad for name, p in lstm.named_parameters() if "bias_hh" not in name]
        assert len(trained) == 12 == sum(p.requires_grad for p in lstm.parameters())
        found[mode, kind] = [y.detach(), x.grad, *trained]
    for way in found.values():
        for each, expected in zip(way, found["eager", "fused"], strict=True):
            np.testing.assert_allclose(each, expected, rtol=1e-10, atol=1e-13)
