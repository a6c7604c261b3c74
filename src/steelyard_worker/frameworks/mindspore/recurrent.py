"""LSTM layers over time-major sequences (T, N, width): `nn.LSTM`, whose second bias is zero and never trained (P-21)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mindspore import Tensor, nn, ops

from steelyard_worker.frameworks.mindspore.layers import named_by_cell

if TYPE_CHECKING:
    from mindspore import Parameter

KINDS = {"weight_ih_l0": "w_ih", "weight_hh_l0": "w_hh", "bias_ih_l0": "b"}


class Lstm(nn.Cell):
    """One direction over all steps from zero state: (T, N, width) -> (T, N, hidden)."""

    def __init__(self, width: int, hidden: int) -> None:
        super().__init__()
        self.kernel = nn.LSTM(width, hidden)
        for bias in self.kernel.b_hh_list:
            bias.set_data(ops.zeros_like(bias))
            bias.requires_grad = False

    def construct(self, steps: Tensor) -> Tensor:
        return self.kernel(steps)[0]


class Bidirectional(nn.Cell):
    """Both directions over the valid steps: (T, N, width), lengths (N,) -> two of (T, N, hidden), 0 after the lengths (P-25).

    With `seq_length`, `nn.LSTM` runs an unrolled loop over cells instead of its fused kernel. Here the sequences are reversed
    instead, so that both directions are fused kernels over all steps.
    """

    def __init__(self, width: int, hidden: int) -> None:
        super().__init__()
        self.onward, self.back = Lstm(width, hidden), Lstm(width, hidden)
        self.reverse = ops.ReverseSequence(seq_dim=0, batch_dim=1)

    def construct(self, steps: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        inside = ops.arange(steps.shape[0]).reshape(-1, 1) < lengths.reshape(1, -1)
        mask = ops.expand_dims(ops.cast(inside, steps.dtype), 2)
        back = self.reverse(self.back(self.reverse(steps, lengths)), lengths)
        return self.onward(steps) * mask, back * mask


def named_by_cell_and_direction(network: nn.Cell) -> dict[str, Parameter]:
    """Map canonical names to parameters as `named_by_cell` does, including LSTMs without their second biases."""
    found: dict[str, Parameter] = {}
    for path, parameter in named_by_cell(network).items():
        cell, _, name = path.rpartition(".")
        if name in KINDS:
            where, _, last = cell.removesuffix(".kernel").rpartition(".")
            direction = {"onward": "forward", "back": "backward"}.get(last, last)
            found[f"{where}.{direction}.{KINDS[name]}" if where else f"{direction}.{KINDS[name]}"] = parameter
        elif name != "bias_hh_l0":
            found[path] = parameter
    return found
