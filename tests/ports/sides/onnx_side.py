"""The same small network as pytorch_side.py as an ONNX file."""

import numpy as np
import onnx
from onnx import TensorProto as T
from onnx import helper as h
from onnx import numpy_helper as nh
from weights import W

EPS = 1e-5


def model():
    i = [nh.from_array(v if not k.startswith("down.w") else v.T.copy(), k) for k, v in W.items()] + [
        nh.from_array(np.array([2, 3]), "axes")
    ]
    n = [
        h.make_node("Conv", ["x", "conv.weight", "conv.bias"], ["c"], kernel_shape=[3, 3], pads=[1] * 4),
        h.make_node("BatchNormalization", ["c", "bn.weight", "bn.bias", "bn.mean", "bn.var"], ["n"], epsilon=1e-5),
        h.make_node("Relu", ["n"], ["r"]),
        h.make_node("MaxPool", ["r"], ["p"], kernel_shape=[2, 2], strides=[2, 2]),
        h.make_node("ReduceMean", ["p", "axes"], ["m"], keepdims=0),
        h.make_node("Gemm", ["m", "up.weight", "up.bias"], ["u"], transB=1),
        h.make_node("Gelu", ["u"], ["g"]),
        h.make_node("LayerNormalization", ["g", "norm.weight", "norm.bias"], ["l"], epsilon=EPS),
        h.make_node("MatMul", ["l", "down.weight"], ["d"]),
        h.make_node("Add", ["d", "down.bias"], ["out"]),
    ]
    g = h.make_graph(
        n,
        "g",
        [h.make_tensor_value_info("x", T.FLOAT, ["b", 3, 8, 8])],
        [h.make_tensor_value_info("out", T.FLOAT, ["b", 5])],
        i,
    )
    m = h.make_model(g, opset_imports=[h.make_opsetid("", 20)])
    m.ir_version = 10
    onnx.save(m, "network.onnx")
    return "network.onnx"


def loss(outputs, batch):
    logits = outputs - np.log(np.exp(outputs).sum(-1, keepdims=True))
    return -logits[np.arange(len(logits)), batch["y"]].mean()
