"""TensorFlow: any tf.Module that can be called; modules and Keras layers in it are followed by `__call__` of their classes."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import numpy as np
import tensorflow as tf

from steelyard_worker.port import attributes
from steelyard_worker.port.calling import called, check_callable, mode_of
from steelyard_worker.port.following import classes_followed
from steelyard_worker.port.observed import Bridge, Call

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from steelyard_worker.port.observed import Observer

# A weight of this name is (inputs, outputs), as `tf.matmul(x, self.w)` needs it.
ROLES = {"w": "kernel"}


def _array(tensor: Any) -> np.ndarray:
    found = tensor.numpy()
    return found if isinstance(found, np.ndarray) and found.dtype.kind in "fiub" else np.asarray(found, np.float32)


def _like(array: np.ndarray, example: Any) -> Any:
    return tf.convert_to_tensor(array, dtype=example.dtype)


def _is_keras(value: Any) -> bool:
    keras = sys.modules.get("keras")
    return keras is not None and isinstance(value, keras.layers.Layer)


def _is_module(value: Any) -> bool:
    return isinstance(value, tf.Module) or _is_keras(value)


def _members(module: Any) -> Iterator[tuple[str, Any]]:
    """Yield modules and variables that a module holds; a Keras layer says itself what it has."""
    if _is_keras(module):
        yield from ((layer.name, layer) for layer in module._layers if _is_keras(layer))
        own = [*module._trainable_variables, *module._non_trainable_variables]
        yield from ((variable.name, variable.value) for variable in own if "seed_generator" not in variable.path)
        return
    ignored = getattr(type(module), "_TF_MODULE_IGNORED_PROPERTIES", frozenset())
    yield from attributes.members(module, lambda name: name in ignored or name.startswith(("_self_", "_tf_")))


class TFModule:
    """A tf.Module."""

    kind = "tf.Module"

    def __init__(self, module: Any) -> None:
        check_callable(module, "Give it one, which computes the outputs.")
        self._module = module
        self.bridge = Bridge(lambda value: isinstance(value, (tf.Tensor, tf.Variable)), _array, _like)
        tf.config.run_functions_eagerly(run_eagerly=True)  # a compiled function calls its modules once, with no values

    def tensors(self) -> Iterator[tuple[str, Any, bool]]:
        """Yield all variables by the attributes that lead to them."""
        for name, variable in self._variables().items():
            yield name, variable, bool(variable.trainable)

    def load(self, arrays: Mapping[str, np.ndarray]) -> None:
        """Assign arrays to variables."""
        named = self._variables()
        for name, array in arrays.items():
            named[name].assign(np.asarray(array).reshape(named[name].shape).astype(named[name].dtype.as_numpy_dtype))

    def double(self) -> bool:
        """Replace all variables and constants by ones of float64; False where Keras layers keep the dtype they were made with."""
        modules = [self._module, *self._below().values()]
        if any(map(_is_keras, modules)):
            return False
        known: dict[int, tuple[Any, Any]] = {}
        for module in modules:
            for name, value in list(vars(module).items()):
                if any(_is_floating(each) for _, each in attributes.parts(name, value)):
                    setattr(module, name, attributes.replaced(value, lambda each: _doubled(each, known)))
        return True

    def prepare_double(self) -> bool:
        """Let Keras layers that are made from now on compute in float64."""
        from steelyard_worker.port.objects import keras_model

        return keras_model.compute_in_float64()

    def place(self, arrays: Mapping[str, np.ndarray]) -> dict[str, Any]:
        """Return tensors; floats in the dtype of the first variable that has one."""
        dtypes = (variable.dtype for variable in self._variables().values())
        floating = next((dtype for dtype in dtypes if dtype.is_floating), tf.float32)
        return {
            name: tf.convert_to_tensor(array, dtype=floating if array.dtype.kind == "f" else None)
            for name, array in arrays.items()
        }

    def forward(self, arguments: Any, observer: Observer, training: bool) -> Any:
        """Call the module; modules and layers below it report to the observer."""
        paths = {id(module): path for path, module in self._below().items()}
        classes = {type(module) for module in self._below().values()}
        with classes_followed(observer, classes, lambda module: paths.get(id(module), ""), _call):
            return self._called(arguments, training)

    def predictor(self) -> Callable[[Any], Any]:
        """Return the forward pass in evaluation mode as one tf.function."""
        run: Callable[[Any], Any] = tf.function(lambda arguments: self._called(arguments, False), reduce_retracing=True)
        return run

    def _called(self, arguments: Any, training: bool) -> Any:
        own = type(self._module).__call__
        function = getattr(own, "python_function", own)
        named = mode_of(function, training)
        return called(lambda *a, **k: self._module(*a, **k, **named), arguments, function)

    def _below(self) -> dict[str, Any]:
        return attributes.modules(self._module, _is_module, _members)

    def _variables(self) -> dict[str, Any]:
        found = {}
        for path, module in {"": self._module, **self._below()}.items():
            for role, value in _members(module):
                if isinstance(value, tf.Variable):
                    found[f"{path}/{role}" if path else role] = value
        return found


def _is_floating(value: Any) -> bool:
    return isinstance(value, (tf.Tensor, tf.Variable)) and value.dtype.is_floating


def _doubled(value: Any, known: dict[int, tuple[Any, Any]]) -> Any:
    """Return a variable or a constant as float64, the same one for the same one; anything else as it is."""
    if not _is_floating(value):
        return value
    if id(value) not in known:
        wide = tf.cast(value, tf.float64)
        is_variable = isinstance(value, tf.Variable)
        new = tf.Variable(wide, trainable=value.trainable, name=value.name.split(":")[0]) if is_variable else wide
        known[id(value)] = value, new  # the old one is kept, so that no other gets its identity
    return known[id(value)][1]


def _call(path: str, module: Any) -> Call:
    own = {}
    for role, value in _members(module):
        if isinstance(value, tf.Variable):
            own[ROLES.get(role, role)] = f"{path}/{role}"
    return Call("", path, type(module).__name__, *_described(module), tensors=own)


def _described(module: Any) -> tuple[str, dict[str, Any]]:
    """Return what a module computes and its constants: known for Keras layers, unknown for modules of a user's own."""
    if _is_keras(module):
        from steelyard_worker.port.objects import keras_model

        return keras_model.described(module)
    return "", {}
