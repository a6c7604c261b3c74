"""LSTM layers over sequences, run as the knob `lstm` says; the second bias is zero and never trained (P-21)."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import torch
from torch import nn
from torch.nn import functional as F

from steelyard_worker.frameworks.pytorch.layers import named_by_module
from steelyard_worker.frameworks.pytorch.recurrence import Deferred

if TYPE_CHECKING:
    from collections.abc import Callable

    from torch import Tensor

    Run = Callable[..., Tensor]
    Step = Callable[..., tuple[Tensor, Tensor]]

KINDS = {"weight_ih_l0": "w_ih", "weight_hh_l0": "w_hh", "bias_ih_l0": "b"}


class Lstm(nn.LSTM):
    """`nn.LSTM` over all steps from zero state: (T, N, width) -> (T, N, hidden), or with the batch first if it is built so.

    `run` computes one direction of one layer step by step; without it, the kernel of `nn.LSTM` computes all of them.
    """

    run: Run | None = None

    def __init__(self, *sizes: int, **options: Any) -> None:
        super().__init__(*sizes, **options)
        for name, parameter in self.named_parameters():
            if name.startswith("bias_hh"):
                nn.init.zeros_(parameter).requires_grad_(False)

    def forward(self, steps: Tensor) -> Tensor:
        if self.run is None:
            return super().forward(steps)[0]
        steps = steps.transpose(0, 1) if self.batch_first else steps
        for layer in range(self.num_layers):
            onward = self.run(steps, *self._weights(f"l{layer}"))
            if self.bidirectional:
                back = self.run(steps.flip(0), *self._weights(f"l{layer}_reverse"))
                onward = torch.cat((onward, back.flip(0)), 2)
            steps = onward
        return steps.transpose(0, 1) if self.batch_first else steps

    def _weights(self, suffix: str) -> list[Tensor]:
        return [getattr(self, f"{kind}_{suffix}") for kind in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")]


def choose(network: nn.Module, implementation: str, compiled: bool) -> None:
    """Make every `Lstm` of a network run as the knob `lstm` says: "fused", "cell" or "loop".

    `compiled`: the function of one step is compiled. The compiler would unroll a loop and take hours for a long one.
    """
    run = None
    if implementation != "fused":
        over_time, step = {"cell": (by_cell, _cell), "loop": (by_loop, gates)}[implementation]
        run = _uncompiled(over_time, torch.compile(step, dynamic=False)) if compiled else partial(over_time, step)
    for module in network.modules():
        if isinstance(module, Lstm):
            module.run = run


def _uncompiled(over_time: Run, step: Step) -> Run:
    def run(*arguments: Tensor) -> Tensor:
        return over_time(step, *arguments)

    # Not a decorator of the loops, because it imports the compiler.
    return torch.compiler.disable(run)


def by_cell(step: Step, steps: Tensor, *weights: Tensor) -> Tensor:
    """Run the function of `nn.LSTMCell`, `step`, over (T, N, width): hidden states (T, N, hidden)."""
    h = c = steps.new_zeros(steps.shape[1], weights[1].shape[1])
    found = []
    for x in steps.unbind():
        h, c = step(x, h, c, *weights)
        found.append(h)
    return torch.stack(found)


def _cell(
    x: Tensor, h: Tensor, c: Tensor, w_ih: Tensor, w_hh: Tensor, b: Tensor, zero: Tensor
) -> tuple[Tensor, Tensor]:
    return torch.lstm_cell(x, (h, c), w_ih, w_hh, b, zero)


def by_loop(step: Step, steps: Tensor, w_ih: Tensor, w_hh: Tensor, b: Tensor, zero: Tensor) -> Tensor:
    """Run the formula `step` over (T, N, width): hidden states (T, N, hidden).

    The inputs are multiplied before the loop, and the gradient of `w_hh` is one product after it.
    """
    del zero  # the second bias
    h = c = steps.new_zeros(steps.shape[1], w_hh.shape[1])
    product, found = Deferred(w_hh, F.linear(steps, w_ih, b)), []
    for _ in range(len(steps)):
        h, c = step(product(h), c)
        found.append(h)
    return torch.stack(found)


def gates(z: Tensor, c: Tensor) -> tuple[Tensor, Tensor]:
    """Gates z (N, 4H) and cell state (N, H) -> (hidden state, cell state)."""
    i, f, g, o = z.chunk(4, 1)
    c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
    return torch.sigmoid(o) * torch.tanh(c), c


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
