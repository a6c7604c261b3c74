"""LSTM layers over time-major sequences (T, N, width): `nn.LSTM`, whose second bias is zero and never trained (P-21)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import nn

from steelyard_worker.frameworks.pytorch.layers import named_by_module

if TYPE_CHECKING:
    from torch import Tensor

KINDS = {"weight_ih_l0": "w_ih", "weight_hh_l0": "w_hh", "bias_ih_l0": "b"}


class Lstm(nn.LSTM):
    """One direction over all steps from zero state: (T, N, width) -> (T, N, hidden)."""

    def __init__(self, width: int, hidden: int) -> None:
        super().__init__(width, hidden)
        nn.init.zeros_(self.bias_hh_l0).requires_grad_(False)

    def forward(self, steps: Tensor) -> Tensor:
        return super().forward(steps)[0]


class Bidirectional(nn.Module):
    """Both directions over the valid steps: (T, N, width), lengths (N,) -> two of (T, N, hidden), 0 after the lengths (P-25).

    The backward direction runs over sequences that are reversed by an index, so both are plain kernels over all steps. Packed
    sequences would use a loop instead of oneDNN's LSTM, take twice the time, and need the lengths on the host.
    """

    def __init__(self, width: int, hidden: int) -> None:
        super().__init__()
        self.onward, self.back = Lstm(width, hidden), Lstm(width, hidden)

    def forward(self, steps: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        time = torch.arange(len(steps), device=steps.device)[:, None]
        inside = time < lengths
        rows = torch.where(inside, lengths - 1 - time, time) * len(lengths) + torch.arange(
            len(lengths), device=steps.device
        )
        mask = inside.to(steps.dtype)[..., None]
        back = _selected(self.back(_selected(steps, rows)), rows)
        return self.onward(steps) * mask, back * mask


def _selected(steps: Tensor, rows: Tensor) -> Tensor:
    """Select rows of (T, N, width) as one long list, whose gradient is a fast sum over rows."""
    return steps.flatten(0, 1).index_select(0, rows.flatten()).view_as(steps)


def named_by_module_and_direction(network: nn.Module) -> dict[str, Tensor]:
    """Map canonical names to tensors as `named_by_module` does, including LSTMs without their second biases."""
    found: dict[str, Tensor] = {}
    for path, tensor in named_by_module(network).items():
        module, _, name = path.rpartition(".")
        if name in KINDS:
            where, _, last = module.rpartition(".")
            direction = {"onward": "forward", "back": "backward"}.get(last, last)
            found[f"{where}.{direction}.{KINDS[name]}" if where else f"{direction}.{KINDS[name]}"] = tensor
        elif name != "bias_hh_l0":
            found[path] = tensor
    return found
