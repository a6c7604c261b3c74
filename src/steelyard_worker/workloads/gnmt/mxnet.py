"""GNMT v2 in MXNet: Gluon's fused LSTM over time-major sequences, attention over the whole target at once."""

from __future__ import annotations

from typing import Any

from mxnet import gluon
from mxnet.gluon import HybridBlock, nn

from steelyard_worker.frameworks.mxnet.recurrent import Bidirectional, Lstm, named_by_prefix
from steelyard_worker.probes import probe

PAD, SMOOTHING = 0, 0.1


class Attention(HybridBlock):
    """Queries (T, N, H), keys (S, N, H), lengths (N,) -> contexts (T, N, H), by normalised Bahdanau scores."""

    def __init__(self, hidden: int) -> None:
        super().__init__(prefix="attention.")
        with self.name_scope():
            self.query = nn.Dense(hidden, use_bias=False, flatten=False, in_units=hidden, prefix="query.")
            self.key = nn.Dense(hidden, use_bias=False, flatten=False, in_units=hidden, prefix="key.")
            self.b, self.v = (self.params.get(name, shape=(hidden,)) for name in ("b", "v"))
            self.g = self.params.get("g", shape=(1,))

    def hybrid_forward(self, F: Any, queries: Any, keys: Any, lengths: Any, b: Any, v: Any, g: Any) -> Any:
        values = F.swapaxes(keys, 0, 1)
        query = F.swapaxes(self.query(queries), 0, 1)
        key = F.broadcast_add(self.key(values), b)
        direction = F.broadcast_mul(v, F.broadcast_div(g, F.sqrt(F.sum(v * v))))
        sums = F.broadcast_add(F.expand_dims(query, 2), F.expand_dims(key, 1))
        scores = F.dot(F.tanh(sums), direction)
        ahead = F.broadcast_like(F.expand_dims(lengths, 1), query, lhs_axes=(1,), rhs_axes=(1,))
        weights = F.softmax(scores, ahead, use_length=True)
        return F.swapaxes(F.batch_dot(weights, values), 0, 1)


class Network(HybridBlock):
    """Source (N, S), its lengths (N,), target (N, T) -> logits (N, T - 1, vocabulary) of the target's next words."""

    def __init__(self, sizes: dict[str, Any]) -> None:
        super().__init__(prefix="")
        vocabulary, hidden, layers = sizes["vocabulary"], sizes["hidden"], sizes["layers"]
        self.embedding = nn.Embedding(vocabulary, hidden, sparse_grad=False, prefix="embedding.")
        source, target = sizes["source"], sizes["target"] - 1
        self.ends = Bidirectional("encoder.layer0", hidden, hidden, source)
        self.encoder = _listed(
            Lstm(f"encoder.layer{number}", 2 * hidden if number == 1 else hidden, hidden, source)
            for number in range(1, layers)
        )
        self.query = Lstm("decoder.layer0", hidden, hidden, target)
        self.attention = Attention(hidden)
        self.decoder = _listed(
            Lstm(f"decoder.layer{number}", 2 * hidden, hidden, target) for number in range(1, layers)
        )
        self.classifier = nn.Dense(vocabulary, flatten=False, in_units=hidden, prefix="classifier.")

    def hybrid_forward(self, F: Any, source: Any, source_length: Any, target: Any) -> Any:
        # The fused operator needs time first; transposing the indices is cheaper than transposing the vectors (P-26).
        x = probe("encoded0", F.concat(*self.ends(self.embedding(F.transpose(source)), source_length), dim=2))
        for number, lstm in enumerate(self.encoder, 1):
            y = lstm(x)
            x = probe(f"encoded{number}", x + y if number > 1 else y)
        given = F.slice_axis(F.transpose(target), axis=0, begin=0, end=-1)
        keys, x = x, self.query(self.embedding(given))
        context = probe("context", self.attention(probe("decoded0", x), keys, source_length))
        for number, lstm in enumerate(self.decoder, 1):
            y = lstm(F.concat(x, context, dim=2))
            x = probe(f"decoded{number}", x + y if number > 1 else y)
        return self.classifier(F.swapaxes(x, 0, 1))


def _listed(blocks: Any) -> nn.HybridSequential:
    """Return a container that makes Gluon find the parameters of the blocks, which are called one by one."""
    held = nn.HybridSequential(prefix="")
    held.add(*blocks)
    return held


class Loss(HybridBlock):
    """Cross-entropy with smoothed labels, summed over all words except padding, divided by the number of sentences."""

    def hybrid_forward(self, F: Any, logits: Any, target: Any) -> Any:
        labels = F.slice_axis(target, axis=1, begin=1, end=None)
        # With an explicit temperature MXNet does not use oneDNN's log_softmax, which is less exact (P-53).
        scores = F.log_softmax(logits, axis=-1, temperature=1.0)
        each = (SMOOTHING - 1) * F.pick(scores, labels, axis=-1) - SMOOTHING * F.mean(scores, axis=-1)
        inside = F.cast(labels, "float32") != PAD
        return F.mean(F.sum(F.where(inside, each, F.zeros_like(each)), axis=1))


INPUTS, TARGETS, OUTPUTS = ("source", "source_length", "target"), ("target",), ("logits",)


def build(sizes: dict[str, Any]) -> HybridBlock:
    """Return the network; its weights are loaded later."""
    return Network(sizes)


def variables(network: HybridBlock) -> dict[str, gluon.Parameter]:
    """Map canonical names to parameters."""
    return named_by_prefix(network)


def loss() -> HybridBlock:
    """Cross-entropy with smoothed labels, summed over all words except padding, divided by the number of sentences."""
    return Loss()
