"""What single nodes of an ONNX graph compute, and their constants, in words that all frameworks share."""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx import helper, numpy_helper

# Operation -> roles of its inputs, where these are weights.
ROLES = {
    "Conv": ("", "weight", "bias"),
    "MatMul": ("", "kernel"),
    "Gather": ("weight",),
    "Add": ("bias", "bias"),
    "Mul": ("scale", "scale"),
    "BatchNormalization": ("", "scale", "bias", "mean", "variance"),
}
NORM = ("", "scale", "bias")
KINDS = {
    "Conv": "convolution",
    "Gemm": "dense",
    "MatMul": "dense",
    "LayerNormalization": "layer_norm",
    "BatchNormalization": "batch_norm",
    "GroupNormalization": "group_norm",
    "RMSNormalization": "rms_norm",
    "Gather": "embedding",
    "LSTM": "lstm",
    "GRU": "gru",
    "Gelu": "gelu",
    "MaxPool": "pooling",
    "AveragePool": "pooling",
}


def roles(node: Any) -> tuple[str, ...]:
    """Return the role of each input of a node, where it is a weight."""
    if node.op_type == "Gemm":
        is_transposed = any(each.name == "transB" and each.i for each in node.attribute)
        return ("", "weight" if is_transposed else "kernel", "bias")
    usual = NORM if node.op_type.endswith("Normalization") else tuple(f"input{n}" for n in range(len(node.input)))
    return ROLES.get(node.op_type, usual)


def described(node: Any) -> tuple[str, dict[str, Any]]:
    """Return what a node computes and its constants, in words that all frameworks share."""
    known = {each.name: helper.get_attribute_value(each) for each in node.attribute}
    kind = KINDS.get(node.op_type, "")
    if kind in ("layer_norm", "batch_norm", "group_norm", "rms_norm"):
        return kind, {"epsilon": float(str(np.float32(known.get("epsilon", 1e-5))))}
    if kind in ("convolution", "pooling"):
        return kind, _window(node.op_type, known)
    if kind == "gelu":
        return kind, {"approximate": known.get("approximate", b"none").decode()}
    return kind, {}


def _window(operation: str, known: dict[str, Any]) -> dict[str, Any]:
    places = len(known.get("kernel_shape", ()))
    pads = list(known.get("pads", [0] * 2 * places))
    found = {"stride": list(known.get("strides", [1] * places)), "padding": pads[:places]}
    if known.get("auto_pad", b"NOTSET") not in (b"NOTSET", b"VALID"):
        found["padding"] = "same"
    if operation == "Conv":
        return found | {"dilation": list(known.get("dilations", [1] * places)), "groups": known.get("group", 1)}
    return found | {
        "kind": "maximum" if operation == "MaxPool" else "mean",
        "window": list(known["kernel_shape"]),
        "size": "up" if known.get("ceil_mode") else "down",
        "mean over": "the window" if known.get("count_include_pad") else "the places that are there",
    }


def constant(node: Any) -> np.ndarray:
    """Return the value of a Constant node, of any of the attributes that can hold it."""
    attribute = node.attribute[0]
    if attribute.name == "value":
        return numpy_helper.to_array(attribute.t)
    value = helper.get_attribute_value(attribute)
    dtype = {"value_float": np.float32, "value_floats": np.float32, "value_int": np.int64, "value_ints": np.int64}
    return np.asarray(value, dtype.get(attribute.name))
