"""LSTM layers over time-major sequences (T, N, width), as the knob `lstm` says; the second bias is zero and frozen (P-21)."""

from __future__ import annotations

import json
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

import mxnet as mx
from mxnet.gluon import HybridBlock, nn, rnn

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mxnet.gluon import Parameter

KINDS = {"l0_i2h_weight": "w_ih", "l0_h2h_weight": "w_hh", "l0_i2h_bias": "b"}
_implementation: ContextVar[str] = ContextVar("lstm", default="fused")


@contextmanager
def built_as(implementation: str) -> Iterator[None]:
    """Build every `Lstm` within as "fused", "cell" or "loop"."""
    token = _implementation.set(implementation)
    try:
        yield
    finally:
        _implementation.reset(token)


class Lstm(HybridBlock):
    """Layers over all steps from zero state: (T, N, width) -> (T, N, hidden), or (T, N, 2 hidden) in both directions.

    "fused" is Gluon's `rnn.LSTM`, one operator; "cell" unrolls `rnn.LSTMCell` over the `length` of the sequences; "loop" unrolls
    the formula of a cell, written out. Parameters have the names that `rnn.LSTM` gives them.
    """

    def __init__(
        self, name: str, width: int, hidden: int, length: int, layers: int = 1, bidirectional: bool = False
    ) -> None:
        super().__init__(prefix="")
        chosen = _implementation.get()
        if chosen == "fused":
            self.kernel: HybridBlock = rnn.LSTM(
                hidden,
                layers,
                layout="TNC",
                bidirectional=bidirectional,
                input_size=width,
                h2h_bias_initializer="zeros",
                prefix=f"{name}.",
            )
        else:
            kind, sides = {"cell": Cells, "loop": Loop}[chosen], "lr"[: 1 + bidirectional]
            self.kernel = nn.HybridSequential(prefix="")
            for number in range(layers):
                each = [kind(f"{name}.{side}{number}_", width, hidden, length) for side in sides]
                self.kernel.add(Sides(*each))
                width = hidden * len(sides)
        for parameter in self.kernel.collect_params(".*h2h_bias").values():
            parameter.grad_req = "null"

    def hybrid_forward(self, F: Any, steps: Any) -> Any:
        return self.kernel(steps)


class Sides(HybridBlock):
    """One layer: its forward direction, and its backward direction if there is one, concatenated."""

    def __init__(self, onward: HybridBlock, back: HybridBlock | None = None) -> None:
        super().__init__(prefix="")
        self.onward, self.back = onward, back

    def hybrid_forward(self, F: Any, steps: Any) -> Any:
        found = self.onward(steps)
        if self.back is None:
            return found
        return F.concat(found, F.reverse(self.back(F.reverse(steps, axis=0)), axis=0), dim=2)


class Cells(HybridBlock):
    """One direction by `rnn.LSTMCell`, whose products with the inputs are inside the loop."""

    def __init__(self, prefix: str, width: int, hidden: int, length: int) -> None:
        super().__init__(prefix="")
        self.cell, self.length = rnn.LSTMCell(hidden, input_size=width, prefix=prefix), length
        self._hidden = hidden

    def hybrid_forward(self, F: Any, steps: Any) -> Any:
        self.cell.reset()
        one = F.slice_axis(
            F.reshape(F.slice_axis(steps, axis=0, begin=0, end=1), shape=(-3, 0)), axis=1, begin=0, end=1
        )
        zero = F.zeros_like(F.broadcast_axis(one, axis=1, size=self._hidden))
        return self.cell.unroll(self.length, steps, [zero, zero], layout="TNC", merge_outputs=True)[0]


class Loop(HybridBlock):
    """One direction by a written-out formula, whose inputs are multiplied before the loop."""

    def __init__(self, prefix: str, width: int, hidden: int, length: int) -> None:
        super().__init__(prefix=prefix)
        self._hidden, self.length = hidden, length
        shapes = {"i2h_weight": (4 * hidden, width), "h2h_weight": (4 * hidden, hidden), "i2h_bias": (4 * hidden,)}
        for name, shape in shapes.items():
            setattr(self, name, self.params.get(name, shape=shape))

    def hybrid_forward(self, F: Any, steps: Any, i2h_weight: Any, h2h_weight: Any, i2h_bias: Any) -> Any:
        projected = F.FullyConnected(steps, i2h_weight, i2h_bias, num_hidden=4 * self._hidden, flatten=False)
        first = F.reshape(F.slice_axis(projected, axis=0, begin=0, end=1), shape=(-3, 0))
        h = c = F.zeros_like(F.slice_axis(first, axis=1, begin=0, end=self._hidden))
        found = []
        for at in _each(F, projected, self.length):
            gates = at + F.FullyConnected(h, h2h_weight, no_bias=True, num_hidden=4 * self._hidden)
            i, f, g, o = F.SliceChannel(gates, num_outputs=4, axis=1)
            c = F.sigmoid(f) * c + F.sigmoid(i) * F.tanh(g)
            h = F.sigmoid(o) * F.tanh(c)
            found.append(h)
        return F.stack(*found, axis=0)


def _each(F: Any, steps: Any, length: int) -> list[Any]:
    found = F.SliceChannel(steps, num_outputs=length, axis=0, squeeze_axis=True)
    return list(found) if length > 1 else [found]


class Bidirectional(HybridBlock):
    """Both directions over the valid steps: (T, N, width), lengths (N,) -> two of (T, N, hidden), 0 after the lengths.

    The fused operator uses lengths with cuDNN only and ignores them on CPU without an error (P-25), so sequences are reversed
    instead.
    """

    def __init__(self, name: str, width: int, hidden: int, length: int) -> None:
        super().__init__(prefix="")
        self.onward = Lstm(f"{name}.forward", width, hidden, length)
        self.back = Lstm(f"{name}.backward", width, hidden, length)

    def hybrid_forward(self, F: Any, steps: Any, lengths: Any) -> tuple[Any, Any]:
        flipped = F.SequenceReverse(steps, lengths, use_sequence_length=True)
        back = F.SequenceReverse(self.back(flipped), lengths, use_sequence_length=True)
        return tuple(F.SequenceMask(half, lengths, use_sequence_length=True) for half in (self.onward(steps), back))


def unrolled(network: HybridBlock) -> list[Cells | Loop]:
    """Return the LSTMs of a network whose graph is unrolled over the `length` of the sequences."""
    children = network._children.values()  # noqa: SLF001 - there is no public list
    own = [network] if isinstance(network, (Cells, Loop)) else []
    return own + [each for child in children for each in unrolled(child)]


def named_by_prefix(network: HybridBlock) -> dict[str, Parameter]:
    """Map canonical names to parameters by the prefixes of their blocks, without the second biases of LSTMs."""
    found = {}
    for path, parameter in network.collect_params().items():
        where, _, name = path.rpartition(".")
        if name != "l0_h2h_bias":
            found[f"{where}.{KINDS.get(name, name)}"] = parameter
    return found


def implementation_of(requested: str) -> str:
    """Return the value of the knob `lstm` that the operators of a layer of two steps show: "fused", "cell" or "loop"."""
    with built_as(requested):
        graph = Lstm("probe", 1, 1, 2)(mx.sym.var("steps"))
    operators = [node["op"] for node in json.loads(graph.tojson())["nodes"]]
    if "RNN" in operators:
        return "fused"
    # Both loops multiply the state once per step; a cell does the same with the input.
    return {4: "cell", 3: "loop"}.get(operators.count("FullyConnected"), "unknown")
