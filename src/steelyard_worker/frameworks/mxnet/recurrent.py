"""LSTM layers over time-major sequences (T, N, width): Gluon's fused LSTM, second bias zero and never trained (P-21)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mxnet.gluon import HybridBlock, rnn

if TYPE_CHECKING:
    from mxnet.gluon import Parameter

KINDS = {"l0_i2h_weight": "w_ih", "l0_h2h_weight": "w_hh", "l0_i2h_bias": "b"}


class Lstm(HybridBlock):
    """One direction over all steps from zero state: (T, N, width) -> (T, N, hidden)."""

    def __init__(self, name: str, width: int, hidden: int) -> None:
        super().__init__(prefix="")
        self.kernel = rnn.LSTM(hidden, layout="TNC", input_size=width, h2h_bias_initializer="zeros", prefix=f"{name}.")
        for parameter in self.kernel.collect_params(".*h2h_bias").values():
            parameter.grad_req = "null"

    def hybrid_forward(self, F: Any, steps: Any) -> Any:
        return self.kernel(steps)


class Bidirectional(HybridBlock):
    """Both directions over the valid steps: (T, N, width), lengths (N,) -> two of (T, N, hidden), 0 after the lengths.

    The fused operator uses lengths with cuDNN only and ignores them on CPU without an error (P-25), so sequences are reversed
    instead.
    """

    def __init__(self, name: str, width: int, hidden: int) -> None:
        super().__init__(prefix="")
        self.onward, self.back = Lstm(f"{name}.forward", width, hidden), Lstm(f"{name}.backward", width, hidden)

    def hybrid_forward(self, F: Any, steps: Any, lengths: Any) -> tuple[Any, Any]:
        flipped = F.SequenceReverse(steps, lengths, use_sequence_length=True)
        back = F.SequenceReverse(self.back(flipped), lengths, use_sequence_length=True)
        return tuple(F.SequenceMask(half, lengths, use_sequence_length=True) for half in (self.onward(steps), back))


def named_by_prefix(network: HybridBlock) -> dict[str, Parameter]:
    """Map canonical names to parameters by the prefixes of their blocks, without the second biases of LSTMs."""
    found = {}
    for path, parameter in network.collect_params().items():
        where, _, name = path.rpartition(".")
        if name != "l0_h2h_bias":
            found[f"{where}.{KINDS.get(name, name)}"] = parameter
    return found
