"""ONNX: a file or a model, run with onnxruntime without its optimisations, so that each of its steps is seen."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import onnx
import onnxruntime
from onnx import AttributeProto, TensorProto, helper, numpy_helper

from steelyard_worker.port.errors import SideError
from steelyard_worker.port.objects import onnx_steps
from steelyard_worker.port.observed import Bridge, Call

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from steelyard_worker.port.objects.onnx_steps import Step
    from steelyard_worker.port.observed import Observer

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


class OnnxModel:
    """An onnx.ModelProto, or the path of a file with one."""

    kind = "onnx.ModelProto"

    def __init__(self, model: Any) -> None:
        self._model = onnx.load(str(model)) if not isinstance(model, onnx.ModelProto) else model
        self.bridge = Bridge(
            lambda value: isinstance(value, np.ndarray),
            lambda array: array if array.dtype.kind in "fiub" else array.astype(np.float32),
            lambda array, example: array.astype(example.dtype),
        )
        self._read()

    def tensors(self) -> Iterator[tuple[str, Any, bool]]:
        """Yield all initialisers of real numbers; a file does not say which were trained, but statistics of norms were not."""
        norms = (node for node in self._model.graph.node if node.op_type == "BatchNormalization")
        statistics = {name for node in norms for name in node.input[3:5]}
        yield from ((name, array, name not in statistics) for name, array in self._weights.items())

    def load(self, arrays: Mapping[str, np.ndarray]) -> None:
        """Replace initialisers."""
        for name, array in arrays.items():
            old = self._weights[name]
            self._weights[name] = np.asarray(array).reshape(old.shape).astype(old.dtype)

    def double(self) -> bool:
        """Convert everything to float64. Operations for which onnxruntime has no float64 kernel fail in the forward pass."""
        changed = {name: array for name, array in self._weights.items() if array.dtype == np.float32}
        _double_graph(self._model.graph)
        for function in self._model.functions:
            for node in function.node:
                _double_node(node)
        self._read()
        self._weights |= {name: array.astype(np.float64) for name, array in changed.items()}
        return True

    def prepare_double(self) -> None:
        """Nothing: a model of this kind is converted."""

    def place(self, arrays: Mapping[str, np.ndarray]) -> dict[str, Any]:
        """Return arrays in the dtypes of the model's inputs."""
        names = self._input_names(list(arrays))
        return {
            given: array.astype(self._inputs[name]) for (given, array), name in zip(arrays.items(), names, strict=True)
        }

    def forward(self, arguments: Any, observer: Observer, training: bool) -> Any:
        """Run all steps; a single output is returned alone, several by their names."""
        del training
        if not isinstance(arguments, dict):
            arguments = dict(
                zip(self._inputs, arguments if isinstance(arguments, tuple) else (arguments,), strict=False)
            )
        values = dict(zip(self._input_names(list(arguments)), arguments.values(), strict=True))
        values |= self._constants | self._weights
        for name, of, node in self._passed_on:
            (values[name],) = self._run(
                f"{name} of {of}", [node], [name], {each: values[each] for each in node.input if each}
            )
        for number, step in enumerate(self._steps):
            given = observer.entered(self._call(step), tuple(values[name] for name in step.inputs))
            fed = {name: values[name] for node in step.nodes for name in onnx_steps.used(node) if name in values}
            fed |= dict(zip(step.inputs, given, strict=True))
            try:
                made = self._run(str(number), step.nodes, step.outputs, fed)
            except BaseException:
                observer.failed()
                raise
            values |= dict(zip(step.outputs, observer.left(made), strict=True))
        found = {each.name: values[each.name] for each in self._model.graph.output}
        return found if len(found) > 1 else next(iter(found.values()))

    def _read(self) -> None:
        """Take weights, constants, inputs and steps from the model."""
        graph = self._model.graph
        arrays = {each.name: numpy_helper.to_array(each) for each in graph.initializer}
        self._weights = {name: array for name, array in arrays.items() if _is_real(array)}
        self._constants = {name: array for name, array in arrays.items() if name not in self._weights}
        self._constants |= {node.output[0]: _constant(node) for node in graph.node if node.op_type == "Constant"}
        self._inputs = {
            each.name: helper.tensor_dtype_to_np_dtype(each.type.tensor_type.elem_type)
            for each in graph.input
            if each.name not in arrays
        }
        nodes = [node for node in graph.node if node.op_type != "Constant"]
        self._passed_on = _passed_on(nodes, self._weights, self._constants)
        self._of = {name: name for name in self._weights} | {name: of for name, of, _ in self._passed_on}
        results = [each.name for each in graph.output]
        self._steps = onnx_steps.steps(nodes, self._of, self._constants, results)
        self._sessions: dict[str, Any] = {}

    def _input_names(self, given: list[str]) -> list[str]:
        """Return the model's inputs by the names that are given, or in their order. SideError: there are fewer of them."""
        if all(name in self._inputs for name in given):
            return given
        if len(given) > len(self._inputs):
            raise SideError(
                f"The model has {len(self._inputs)} inputs ({', '.join(self._inputs)}), and {len(given)} are given."
            )
        return list(self._inputs)[: len(given)]

    def _run(self, key: str, nodes: list[Any], outputs: list[str], fed: dict[str, Any]) -> list[Any]:
        """Run nodes as a model of their own; the session is kept."""
        baked = {name: array for name, array in fed.items() if name in self._constants}
        fed = {name: array for name, array in fed.items() if name not in baked}
        if key not in self._sessions:
            inputs = [
                helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), [None] * array.ndim)
                for name, array in fed.items()
            ]
            results = [onnx.ValueInfoProto(name=name) for name in outputs]
            initialisers = [numpy_helper.from_array(np.asarray(array), name) for name, array in baked.items()]
            graph = helper.make_graph(nodes, "step", inputs, results, initialisers)
            model = helper.make_model(graph, opset_imports=self._model.opset_import, functions=self._model.functions)
            model.ir_version = self._model.ir_version
            self._sessions[key] = _session(model)
        return list(self._sessions[key].run(outputs, fed))

    def _call(self, step: Step) -> Call:
        own = {}
        for node in step.nodes:
            for name, role in zip(node.input, _roles(node), strict=False):
                if name in self._of and role:
                    own[role] = self._of[name]
        kind, settings = next(filter(lambda found: found[0], map(described, step.nodes)), ("", {}))
        types = "+".join(node.op_type for node in step.nodes[:4])
        return Call("", step.name, types, kind, settings, own if step.is_whole else {})


def _is_real(array: np.ndarray) -> bool:
    return array.dtype.kind == "f" or "float" in str(array.dtype)


def _session(model: Any) -> Any:
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    return onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])


def _constant(node: Any) -> np.ndarray:
    """Return the value of a Constant node, of any of the attributes that can hold it."""
    attribute = node.attribute[0]
    if attribute.name == "value":
        return numpy_helper.to_array(attribute.t)
    value = helper.get_attribute_value(attribute)
    dtype = {"value_float": np.float32, "value_floats": np.float32, "value_int": np.int64, "value_ints": np.int64}
    return np.asarray(value, dtype.get(attribute.name))


def _passed_on(
    nodes: list[Any], weights: Mapping[str, Any], constants: Mapping[str, Any]
) -> list[tuple[str, str, Any]]:
    """Return what is a weight in another form: its name, the weight's name, and the node."""
    found: list[tuple[str, str, Any]] = []
    of = {name: name for name in weights}
    for node in nodes:
        given = [name for name in node.input if name]
        is_of_weight = node.op_type in onnx_steps.PASSED_ON and given and given[0] in of
        if is_of_weight and all(name in constants for name in given[1:]):
            of[node.output[0]] = of[given[0]]
            found.append((node.output[0], of[given[0]], node))
    return found


def _double_graph(graph: Any) -> None:
    for tensor in graph.initializer:
        _double_tensor(tensor)
    del graph.value_info[:]
    for each in (*graph.input, *graph.output):
        if each.type.tensor_type.elem_type == TensorProto.FLOAT:
            each.type.tensor_type.elem_type = TensorProto.DOUBLE
    for node in graph.node:
        _double_node(node)


def _double_node(node: Any) -> None:
    for attribute in node.attribute:
        if attribute.type == AttributeProto.TENSOR:
            _double_tensor(attribute.t)
        elif attribute.type == AttributeProto.GRAPH:
            _double_graph(attribute.g)
        elif node.op_type == "Cast" and attribute.name == "to" and attribute.i == TensorProto.FLOAT:
            attribute.i = TensorProto.DOUBLE
        elif node.op_type == "Constant" and attribute.name in ("value_float", "value_floats"):
            value = numpy_helper.from_array(_constant(node).astype(np.float64))
            attribute.CopyFrom(helper.make_attribute("value", value))


def _double_tensor(tensor: Any) -> None:
    if tensor.data_type == TensorProto.FLOAT:
        tensor.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(tensor).astype(np.float64), tensor.name))


def _roles(node: Any) -> tuple[str, ...]:
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
