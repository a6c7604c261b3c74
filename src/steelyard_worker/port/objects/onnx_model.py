"""ONNX: a file or a model, run with onnxruntime without its optimisations, so that each of its steps is seen."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import onnx
import onnxruntime
from google.protobuf.message import DecodeError
from onnx import helper, numpy_helper

from steelyard_worker.port.calling import in_order
from steelyard_worker.port.errors import SideError, message
from steelyard_worker.port.objects import onnx_float64, onnx_nodes, onnx_steps
from steelyard_worker.port.observed import Bridge, Call

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from steelyard_worker.port.objects.onnx_steps import Step
    from steelyard_worker.port.observed import Observer


class OnnxModel:
    """An onnx.ModelProto, or the path of a file with one."""

    kind = "onnx.ModelProto"

    def __init__(self, model: Any) -> None:
        self._model = model if isinstance(model, onnx.ModelProto) else _loaded(str(model))
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
        onnx_float64.convert_graph(self._model.graph)
        for function in self._model.functions:
            for node in function.node:
                onnx_float64.convert_node(node)
        self._read()
        self._weights |= {name: array.astype(np.float64) for name, array in changed.items()}
        return True

    def place(self, arrays: Mapping[str, np.ndarray]) -> dict[str, Any]:
        """Return arrays; floats in the dtype of the first input that has one."""
        floating = next(filter(_is_floating, self._inputs.values()), np.dtype(np.float32))
        return {name: array.astype(floating) if array.dtype.kind == "f" else array for name, array in arrays.items()}

    def forward(self, arguments: Any, observer: Observer, training: bool) -> Any:
        """Run all steps; a single output is returned alone, several by their names."""
        del training
        values = self._at_first(arguments)
        for number, step in enumerate(self._steps):
            given = observer.entered(self._call(step), tuple(values[name] for name in step.inputs))
            fed = {name: values[name] for node in step.nodes for name in onnx_steps.used(node) if name in values}
            fed |= dict(zip(step.inputs, given, strict=True))
            try:
                made = self._computed(str(number), step.nodes, step.outputs, fed)
            except Exception as error:
                observer.failed()
                raise SideError(f"The node '{step.name}' of the ONNX model failed: {message(error)}.") from error
            values |= dict(zip(step.outputs, observer.left(made), strict=True))
        found = {each.name: values[each.name] for each in self._model.graph.output}
        return found if len(found) > 1 else next(iter(found.values()))

    def _at_first(self, arguments: Any) -> dict[str, Any]:
        """Return what is known before the first step: inputs, constants, weights, and weights in another form."""
        given = arguments if isinstance(arguments, dict) else dict(zip(self._inputs, in_order(arguments), strict=False))
        named = dict(zip(self._input_names(list(given)), given.values(), strict=True))
        values = {name: _in_dtype(array, self._inputs[name]) for name, array in named.items()}
        if missing := [name for name in self._inputs if name not in values]:
            raise SideError(f"The model has the input '{missing[0]}', which is not given.")
        values |= self._constants | self._weights
        for name, of, node in self._passed_on:
            fed = {each: values[each] for each in node.input if each}
            (values[name],) = self._computed(f"{name} of {of}", [node], [name], fed)
        return values

    def _read(self) -> None:
        """Take weights, constants, inputs and steps from the model."""
        graph = self._model.graph
        arrays = {each.name: numpy_helper.to_array(each) for each in graph.initializer}
        self._weights = {name: array for name, array in arrays.items() if _is_floating(array.dtype)}
        self._constants = {name: array for name, array in arrays.items() if name not in self._weights}
        self._constants |= {
            node.output[0]: onnx_nodes.constant(node) for node in graph.node if node.op_type == "Constant"
        }
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

    def _computed(self, key: str, nodes: list[Any], outputs: list[str], fed: dict[str, Any]) -> list[Any]:
        """Return what nodes make of values, run as a model of their own; the session is kept."""
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
            for name, role in zip(node.input, onnx_nodes.roles(node), strict=False):
                if name in self._of and role:
                    own[role] = self._of[name]
        kind, settings = next(filter(lambda found: found[0], map(onnx_nodes.described, step.nodes)), ("", {}))
        types = "+".join(node.op_type for node in step.nodes[:4])
        return Call("", step.name, types, kind, settings, own if step.is_whole else {})


def _loaded(path: str) -> Any:
    """Return the model in a file. SideError: there is none."""
    try:
        found = onnx.load(path)
    except FileNotFoundError:
        raise SideError(f"There is no file '{path}', which model() returned.") from None
    except (DecodeError, onnx.checker.ValidationError) as error:
        raise SideError(f"The file '{path}' has no ONNX model: {message(error)}.") from None
    if not found.graph.node:
        raise SideError(f"The ONNX model in '{path}' is empty: it has no nodes.")
    return found


def _is_floating(dtype: Any) -> bool:
    return dtype.kind == "f" or "float" in str(dtype)


def _in_dtype(array: np.ndarray, dtype: Any) -> np.ndarray:
    """Return an array in another dtype of its kind. Where an input is of another kind, onnxruntime says so."""
    return array.astype(dtype) if _is_floating(array.dtype) == _is_floating(dtype) else array


def _session(model: Any) -> Any:
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    return onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])


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
