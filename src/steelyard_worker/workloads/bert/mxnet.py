"""BERT in MXNet: Gluon blocks whose prefixes give the parameters their canonical names; states are (N * T, hidden)."""

from __future__ import annotations

from typing import Any

from mxnet import gluon
from mxnet.gluon import HybridBlock, nn

from steelyard_worker.frameworks.mxnet.attention import SelfAttention, gelu, masked_scores
from steelyard_worker.frameworks.mxnet.precision import Precise

EPSILON = 1e-12


def layer_norm(width: int, prefix: str) -> nn.LayerNorm:
    """Return a layer norm; Gluon's default epsilon is 1e-5 (P-07)."""
    return nn.LayerNorm(axis=-1, epsilon=EPSILON, in_channels=width, prefix=prefix)


def dense(out: int, features: int, prefix: str) -> nn.Dense:
    """Return a dense layer over the last axis."""
    return nn.Dense(out, flatten=False, in_units=features, prefix=prefix)


class Layer(HybridBlock):
    """One encoder layer: (N * T, hidden) -> (N * T, hidden)."""

    def __init__(self, sizes: dict[str, Any], prefix: str) -> None:
        super().__init__(prefix=prefix)
        hidden, inner = sizes["hidden"], sizes["intermediate"]
        with self.name_scope():
            self.attention = SelfAttention((sizes["batch"], sizes["length"]), hidden, sizes["heads"], "attention.")
            self.project = dense(hidden, hidden, "attention.output.")
            self.attention_norm = layer_norm(hidden, "attention.norm.")
            self.intermediate = dense(inner, hidden, "intermediate.")
            self.output = dense(hidden, inner, "output.")
            self.norm = layer_norm(hidden, "norm.")
        self._tanh = sizes["gelu"] == "tanh"

    def hybrid_forward(self, F: Any, x: Any, masked: Any) -> Any:
        x = self.attention_norm(x + self.project(self.attention(x, masked)))
        return self.norm(x + self.output(gelu(F, self.intermediate(x), self._tanh)))


class Network(Precise):
    """Tokens of two sentences -> scores of the masked words, and of the second being the next (0) or a random one (1)."""

    def __init__(self, sizes: dict[str, Any]) -> None:
        super().__init__(prefix="")
        hidden, self._sizes = sizes["hidden"], sizes
        for name, rows in (("word", sizes["vocabulary"]), ("position", sizes["positions"]), ("segment", 2)):
            setattr(self, name, self.params.get(f"embeddings.{name}.weight", shape=(rows, hidden)))
        self.embeddings_norm = layer_norm(hidden, "embeddings.norm.")
        self.encoder = [Layer(sizes, f"layer{number}.") for number in range(sizes["layers"])]
        for layer in self.encoder:
            self.register_child(layer)  # Gluon does not find blocks in lists
        self.pooler = dense(hidden, hidden, "pooler.")
        self.transform = dense(hidden, hidden, "words.transform.")
        self.words_norm = layer_norm(hidden, "words.norm.")
        self.words_bias = self.params.get("words.bias", shape=(sizes["vocabulary"],), init="zeros")
        self.next = dense(2, hidden, "next.")

    def hybrid_forward(
        self,
        F: Any,
        ids: Any,
        mask: Any,
        segments: Any,
        places: Any,
        word: Any,
        position: Any,
        segment: Any,
        words_bias: Any,
    ) -> tuple[Any, Any]:
        batch, length, hidden = (self._sizes[name] for name in ("batch", "length", "hidden"))
        x = F.Embedding(ids, word, input_dim=self._sizes["vocabulary"], output_dim=hidden) + F.take(segment, segments)
        x = F.broadcast_add(x, F.slice_axis(position, axis=0, begin=0, end=length))
        x = self.embeddings_norm(F.reshape(x, (batch * length, hidden)))
        masked = masked_scores(F, mask, self.dtype)
        for layer in self.encoder:
            x = layer(x, masked)
        pooled = F.tanh(self.pooler(F.slice(F.reshape(x, (batch, length * hidden)), begin=(0, 0), end=(batch, hidden))))
        starts = F.arange(0, batch * length, step=length, dtype="int32")
        chosen = F.take(x, F.reshape(F.broadcast_add(places, F.expand_dims(starts, axis=1)), (-1,)))
        chosen = self.words_norm(gelu(F, self.transform(chosen), self._sizes["gelu"] == "tanh"))
        words = F.FullyConnected(chosen, word, words_bias, num_hidden=self._sizes["vocabulary"], flatten=False)
        return F.reshape(words, (batch, -1, self._sizes["vocabulary"])), self.next(pooled)


class Loss(HybridBlock):
    """Weighted mean over all masked words of the batch, plus the mean over its sentence pairs."""

    def hybrid_forward(self, F: Any, words: Any, following: Any, ids: Any, weights: Any, label: Any) -> Any:
        surprise = _surprise(F, words, ids)
        masked = F.broadcast_div(F.sum(surprise * weights), F.sum(weights) + 1e-5)
        return masked + F.mean(_surprise(F, following, label))


def _surprise(F: Any, logits: Any, truth: Any) -> Any:
    # With an explicit temperature MXNet does not use oneDNN's log_softmax, which is wrong by 4e-6 (P-53).
    return -F.pick(F.log_softmax(logits, axis=-1, temperature=1.0), truth, axis=-1)


INPUTS = ("input_ids", "input_mask", "segment_ids", "masked_lm_positions")
TARGETS = ("masked_lm_ids", "masked_lm_weights", "next_sentence_label")
OUTPUTS = ("words", "next")


def build(sizes: dict[str, Any]) -> HybridBlock:
    """Return the network; its weights are loaded later."""
    return Network(sizes)


def variables(network: HybridBlock) -> dict[str, gluon.Parameter]:
    """Map canonical names to parameters."""
    return dict(network.collect_params())


def loss() -> HybridBlock:
    """Return the loss as a block over outputs and targets."""
    return Loss()
