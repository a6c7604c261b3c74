"""An ONNX graph of float32, converted to float64 in place."""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx import AttributeProto, TensorProto, helper, numpy_helper

from steelyard_worker.port.objects import onnx_nodes


def convert_graph(graph: Any) -> None:
    """Convert initialisers, inputs, outputs and nodes of a graph in place; known shapes of inner values are dropped."""
    for tensor in graph.initializer:
        _convert_tensor(tensor)
    del graph.value_info[:]
    for each in (*graph.input, *graph.output):
        if each.type.tensor_type.elem_type == TensorProto.FLOAT:
            each.type.tensor_type.elem_type = TensorProto.DOUBLE
    for node in graph.node:
        convert_node(node)


def convert_node(node: Any) -> None:
    """Convert the constants of a node, its subgraphs, and the type that a Cast makes, in place."""
    for attribute in node.attribute:
        if attribute.type == AttributeProto.TENSOR:
            _convert_tensor(attribute.t)
        elif attribute.type == AttributeProto.GRAPH:
            convert_graph(attribute.g)
        elif node.op_type == "Cast" and attribute.name == "to" and attribute.i == TensorProto.FLOAT:
            attribute.i = TensorProto.DOUBLE
        elif node.op_type == "Constant" and attribute.name in ("value_float", "value_floats"):
            value = numpy_helper.from_array(onnx_nodes.constant(node).astype(np.float64))
            attribute.CopyFrom(helper.make_attribute("value", value))


def _convert_tensor(tensor: Any) -> None:
    if tensor.data_type == TensorProto.FLOAT:
        tensor.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(tensor).astype(np.float64), tensor.name))
