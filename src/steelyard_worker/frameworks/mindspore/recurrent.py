"""LSTM layers over time-major sequences (T, N, width), as the knob `lstm` says; the second bias is zero and frozen (P-21)."""

from __future__ import annotations

from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING

from mindspore import Parameter, Tensor, nn, ops
from mindspore.common.initializer import initializer

from steelyard_worker.frameworks.mindspore.activations import tanh
from steelyard_worker.frameworks.mindspore.layers import named_by_cell

if TYPE_CHECKING:
    from collections.abc import Iterator

_implementation: ContextVar[str] = ContextVar("lstm", default="fused")


@contextmanager
def built_as(implementation: str) -> Iterator[None]:
    """Build every `Lstm` within as "fused", "cell" or "loop"."""
    token = _implementation.set(implementation)
    try:
        yield
    finally:
        _implementation.reset(token)


class Lstm(nn.Cell):
    """Layers over all steps from zero state: (T, N, width) -> (T, N, hidden), or (T, N, 2 hidden) in both directions.

    "fused" is the kernel of `nn.LSTM`; "cell" calls `nn.LSTMCell` at every step; "loop" is the formula of a cell, written out.
    Graph mode unrolls both loops.
    """

    def __init__(self, width: int, hidden: int, layers: int = 1, bidirectional: bool = False) -> None:
        super().__init__()
        self.implementation, self.layers, self.directions = _implementation.get(), layers, 1 + bidirectional
        if self.implementation == "fused":
            self.kernel = nn.LSTM(width, hidden, layers, bidirectional=bidirectional)
            second = self.kernel.b_hh_list
        else:
            kind = {"cell": Cells, "loop": Loop}[self.implementation]
            widths = [width] + [hidden * self.directions] * (layers - 1)
            self.kernel = nn.CellList([kind(each, hidden) for each in widths for _ in range(self.directions)])
            second = [cell.bias_hh for cell in self.kernel if self.implementation == "cell"]
        for bias in second:
            bias.set_data(ops.zeros_like(bias))
            bias.requires_grad = False

    def construct(self, steps: Tensor) -> Tensor:
        if self.implementation == "fused":
            return self.kernel(steps)[0]
        for layer in range(self.layers):
            found = self.kernel[layer * self.directions](steps)
            if self.directions == 2:
                back = self.kernel[layer * 2 + 1](ops.flip(steps, (0,)))
                found = ops.concat((found, ops.flip(back, (0,))), 2)
            steps = found
        return steps

    def named(self) -> dict[str, Parameter]:
        """Map `layer<n>.<direction>.<kind>` to the parameters that are trained."""
        kernel, found = self.kernel, {}
        if self.implementation == "fused":
            each = list(zip(kernel.w_ih_list, kernel.w_hh_list, kernel.b_ih_list, strict=True))
        else:
            each = [(cell.weight_ih, cell.weight_hh, cell.bias_ih) for cell in kernel]
        for number, parameters in enumerate(each):
            layer, backward = divmod(number, self.directions)
            where = f"layer{layer}.{'backward' if backward else 'forward'}"
            found |= dict(zip((f"{where}.w_ih", f"{where}.w_hh", f"{where}.b"), parameters, strict=True))
        return found


class Cells(nn.LSTMCell):
    """One direction by the formula of `nn.LSTMCell`, which multiplies the inputs step by step."""

    def construct(self, steps: Tensor) -> Tensor:
        h = ops.zeros((steps.shape[1], self.hidden_size), steps.dtype)
        c, found = h, ()
        for x in ops.unstack(steps):
            h, c = super().construct(x, (h, c))
            found += (h,)
        return ops.stack(found)


class Loop(nn.Cell):
    """One direction by a written-out formula, whose inputs are multiplied before the loop."""

    def __init__(self, width: int, hidden: int) -> None:
        super().__init__()
        self.weight_ih = Parameter(initializer("zeros", (4 * hidden, width)), name="weight_ih")
        self.weight_hh = Parameter(initializer("zeros", (4 * hidden, hidden)), name="weight_hh")
        self.bias_ih = Parameter(initializer("zeros", (4 * hidden,)), name="bias_ih")
        self.times, self.each, self.hidden = ops.MatMul(transpose_b=True), ops.Split(1, 4), hidden

    def construct(self, steps: Tensor) -> Tensor:
        projected = self.times(steps.reshape(-1, steps.shape[2]), self.weight_ih) + self.bias_ih
        h = ops.zeros((steps.shape[1], self.hidden), steps.dtype)
        c, found = h, ()
        for at in ops.unstack(projected.reshape(steps.shape[0], steps.shape[1], -1)):
            i, f, g, o = self.each(at + self.times(h, self.weight_hh))
            c = ops.sigmoid(f) * c + ops.sigmoid(i) * tanh(g)
            h = ops.sigmoid(o) * tanh(c)
            found += (h,)
        return ops.stack(found)


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
    """Map canonical names to parameters as `named_by_cell` does, including LSTMs of one layer and direction each."""
    lstms = {path: cell for path, cell in network.cells_and_names() if isinstance(cell, Lstm)}
    inside = {id(parameter) for cell in lstms.values() for parameter in cell.get_parameters()}
    found = {path: each for path, each in named_by_cell(network).items() if id(each) not in inside}
    for path, cell in lstms.items():
        where, _, last = path.rpartition(".")
        direction = {"onward": "forward", "back": "backward"}.get(last, last)
        for name, parameter in cell.named().items():
            found[".".join(filter(None, (where, direction, name.rpartition(".")[2])))] = parameter
    return found


def implementation_of(requested: str) -> str:
    """Return the value of the knob `lstm` that the cells of a layer show: "fused", "cell" or "loop"."""
    with built_as(requested):
        kinds = {type(cell) for _, cell in Lstm(1, 1).cells_and_names()}
    return "fused" if nn.LSTM in kinds else "cell" if Cells in kinds else "loop"
