"""Sentiment of film reviews with LSTMs over word indices, in canonical form; one bias per LSTM, gates i, f, g, o.

`readout` is `last` (hidden state of the last step) or `first+last` (outputs of the first and the last step, concatenated).
Padding at the front is processed like any token; there is no mask.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from steelyard_worker.network import Adversarial, Input, Network, Parameter
from steelyard_worker.sizes import at_least, one_of

if TYPE_CHECKING:
    from steelyard_worker.batches import Batch


def describe(sizes: dict[str, Any]) -> Network:
    """Sizes: vocabulary, length, embedding, hidden, layers, bidirectional, readout, train_embedding, classes, batch."""
    one_of(sizes, "readout", "last", "first+last")
    at_least(sizes, "vocabulary", 2)
    hidden, directions = sizes["hidden"], direction_names(sizes)
    parameters = [
        Parameter(
            "embedding.weight",
            (sizes["vocabulary"], sizes["embedding"]),
            "embedding",
            "uniform:0.05",
            trainable=sizes["train_embedding"],
        )
    ]
    width, macs, stored = sizes["embedding"], 0, sizes["length"] * sizes["embedding"]
    for layer in range(sizes["layers"]):
        for direction in directions:
            parameters += _lstm(f"lstm.layer{layer}.{direction}", width, hidden)
            macs += sizes["length"] * 4 * hidden * (width + hidden)
            stored += sizes["length"] * (7 * hidden + width)  # gates, states, input
        width = hidden * len(directions)
    features = width * (2 if sizes["readout"] == "first+last" else 1)
    parameters += [
        Parameter("head.weight", (sizes["classes"], features), "dense", "glorot_uniform"),
        Parameter("head.bias", (sizes["classes"],), "bias", "constant:0"),
    ]
    tokens = Input("tokens", (sizes["length"],), "int32", high=sizes["vocabulary"])
    label = Input("label", (), "int32", high=sizes["classes"])
    return Network(
        tuple(parameters),
        (tokens, label),
        macs + sizes["classes"] * features,
        stored,
        adversarial=_adversarial(sizes),
        probes=("embedding", "readout"),
        likelihood=True,
        loop_reads=sizes["layers"] * len(directions) * sizes["length"] * 4 * hidden**2,
    )


def _adversarial(sizes: dict[str, Any]) -> Adversarial:
    """Saturated gates; reviews without a word, of one word again and again, and of the last word of the vocabulary."""

    def draw(generator: np.random.Generator, batch: int) -> Batch:
        tokens = generator.integers(1, sizes["vocabulary"], (batch, sizes["length"]), dtype=np.int32)
        tokens[0::4] = 0
        tokens[1::4] = tokens[1::4, :1]
        tokens[2::4, ::2] = sizes["vocabulary"] - 1
        return {"tokens": tokens, "label": generator.integers(0, sizes["classes"], batch, dtype=np.int32)}

    # Frozen word vectors come with the data and are larger.
    words = {"embedding.weight": 64.0, "*.w_ih": 4.0}
    return Adversarial(draw, factors=words if sizes["train_embedding"] else {"*.w_ih": 32.0})


def direction_names(sizes: dict[str, Any]) -> tuple[str, ...]:
    """Directions of every layer, in the order in which their outputs are concatenated."""
    return ("forward", "backward") if sizes["bidirectional"] else ("forward",)


def _lstm(name: str, width: int, hidden: int) -> list[Parameter]:
    return [
        Parameter(f"{name}.w_ih", (4 * hidden, width), "lstm_w_ih", "glorot_uniform"),
        Parameter(f"{name}.w_hh", (4 * hidden, hidden), "lstm_w_hh", "orthogonal"),
        Parameter(f"{name}.b", (4 * hidden,), "lstm_b", "forget_one"),
    ]
