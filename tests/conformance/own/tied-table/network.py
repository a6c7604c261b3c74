"""Tokens (T) -> embedding -> mean over tokens -> dense -> tanh -> logits by the same table."""

from __future__ import annotations

from typing import Any

from steelyard_worker.network import Input, Network, Parameter


def describe(sizes: dict[str, Any]) -> Network:
    """Return the network, which has the table once."""
    vocabulary, width = sizes["vocabulary"], sizes["width"]
    parameters = (
        Parameter("table.weight", (vocabulary, width), "embedding", "uniform:0.3"),
        Parameter("mix.weight", (width, width), "dense", "glorot_uniform"),
        Parameter("mix.bias", (width,), "bias", "constant:0"),
    )
    inputs = (
        Input("tokens", (sizes["length"],), "int32", high=vocabulary),
        Input("label", (), "int32", high=vocabulary),
    )
    return Network(parameters, inputs, width * width + vocabulary * width, probes=("mix",), likelihood=True)
