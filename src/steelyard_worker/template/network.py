"""The network as data: its tensors in canonical layout and in the order of the forward pass, its inputs, its cost.

Dense kernels are (out, in), convolution kernels OIHW, embeddings (vocabulary, width). The frameworks' files must create exactly
these tensors under these names. Initial values are generated once, from this description, and loaded into every framework.
`probes` names inner tensors, so that a rejected certificate can name the first layer that differs.
"""

from __future__ import annotations

from typing import Any

from steelyard_worker.network import Input, Network, Parameter


def describe(sizes: dict[str, Any]) -> Network:
    """Sizes: channels, image (pixels a side), hidden, classes, batch."""
    pixels = sizes["channels"] * sizes["image"] ** 2
    parameters = []
    for name, features, out in (("first", pixels, sizes["hidden"]), ("head", sizes["hidden"], sizes["classes"])):
        parameters += [
            Parameter(f"{name}.weight", (out, features), "dense", "glorot_uniform"),
            Parameter(f"{name}.bias", (out,), "bias", "constant:0"),
        ]
    inputs = (
        Input("image", (sizes["channels"], sizes["image"], sizes["image"]), "float32"),
        Input("label", (), "int32", high=sizes["classes"]),
    )
    macs = pixels * sizes["hidden"] + sizes["hidden"] * sizes["classes"]
    return Network(tuple(parameters), inputs, macs, probes=("first",))
