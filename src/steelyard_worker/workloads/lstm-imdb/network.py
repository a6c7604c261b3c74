"""Sentiment of film reviews with LSTMs over word indices, in canonical form; one bias per LSTM, gates i, f, g, o.

`readout` is `last` (hidden state of the last step) or `first+last` (outputs of the first and the last step, concatenated).
Padding at the front is processed like any token; there is no mask.
"""

from __future__ import annotations

from typing import Any

from steelyard_worker.network import Input, Network, Parameter


def describe(sizes: dict[str, Any]) -> Network:
    """Sizes: vocabulary, length, embedding, hidden, layers, bidirectional, readout, train_embedding, classes, batch."""
    hidden, directions = sizes["hidden"], direction_names(sizes)
    parameters = [
        Parameter(
            "embedding.weight", (sizes["vocabulary"], sizes["embedding"]), "embedding", "uniform:0.05",
            trainable=sizes["train_embedding"],
        )
    ]  # fmt: skip
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
    return Network(tuple(parameters), (tokens, label), macs + sizes["classes"] * features, stored)


def direction_names(sizes: dict[str, Any]) -> tuple[str, ...]:
    """Directions of every layer, in the order in which their outputs are concatenated."""
    return ("forward", "backward") if sizes["bidirectional"] else ("forward",)


def _lstm(name: str, width: int, hidden: int) -> list[Parameter]:
    return [
        Parameter(f"{name}.w_ih", (4 * hidden, width), "lstm_w_ih", "glorot_uniform"),
        Parameter(f"{name}.w_hh", (4 * hidden, hidden), "lstm_w_hh", "orthogonal"),
        Parameter(f"{name}.b", (4 * hidden,), "lstm_b", "forget_one"),
    ]
