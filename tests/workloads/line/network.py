"""One dense layer and a softmax: the smallest workload, for tests."""

from __future__ import annotations

from typing import Any

from steelyard_worker.network import Input, Network, Parameter


def describe(sizes: dict[str, Any]) -> Network:
    """Sizes: features, classes, batch."""
    features, classes = sizes["features"], sizes["classes"]
    parameters = (
        Parameter("head.weight", (classes, features), "dense", "glorot_uniform"),
        Parameter("head.bias", (classes,), "bias", "constant:0"),
    )
    inputs = (Input("point", (features,), "float32"), Input("label", (), "int32", high=classes))
    return Network(parameters, inputs, features * classes)
