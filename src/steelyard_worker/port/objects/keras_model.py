"""Keras 3 on any backend: layers are followed by wrapping the `call` of each; the model is run eagerly."""

from __future__ import annotations

import contextlib
import sys
from functools import partial
from typing import TYPE_CHECKING, Any

import keras
import numpy as np

from steelyard_worker.port.errors import SideError
from steelyard_worker.port.observed import Bridge, Call

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from steelyard_worker.port.observed import Observer

_MAX_POOLS = (keras.layers.MaxPooling1D, keras.layers.MaxPooling2D, keras.layers.MaxPooling3D)


def _array(tensor: Any) -> np.ndarray:
    found = np.asarray(keras.ops.convert_to_numpy(tensor))
    return found if found.dtype.kind in "fiub" else found.astype(np.float32)


def _like(array: np.ndarray, example: Any) -> Any:
    return keras.ops.convert_to_tensor(array, dtype=keras.backend.standardize_dtype(example.dtype))


class KerasModel:
    """A keras.Model that has been built."""

    kind = "keras.Model"
    without_randomness = True

    def __init__(self, model: Any) -> None:
        self._model = model
        self.bridge = Bridge(keras.ops.is_tensor, _array, _like)

    def tensors(self) -> Iterator[tuple[str, Any, bool]]:
        """Yield all weights; states of random generators are none."""
        for variable in self._model.weights:
            if "seed_generator" not in variable.path:
                yield variable.path, variable.value, bool(variable.trainable)

    def load(self, arrays: Mapping[str, np.ndarray]) -> None:
        """Assign arrays to variables."""
        named = {variable.path: variable for variable in self._model.weights}
        for name, array in arrays.items():
            named[name].assign(np.asarray(array).reshape(named[name].shape))

    def double(self) -> bool:
        """Layers keep the dtype with which they were made, so the model has to be made again."""
        return False

    def prepare_double(self) -> bool:
        """Let the layers that are made from now on compute in float64."""
        return compute_in_float64()

    def place(self, arrays: Mapping[str, np.ndarray]) -> dict[str, Any]:
        """Return tensors; floats in Keras' own dtype."""
        return {
            name: keras.ops.convert_to_tensor(array, dtype=keras.config.floatx() if array.dtype.kind == "f" else None)
            for name, array in arrays.items()
        }

    def forward(self, arguments: Any, observer: Observer, training: bool) -> Any:
        """Call the model eagerly; wrapped layers report to the observer."""
        with_names = dict(_layers(self._model, ""))
        try:
            for path, layer in with_names.items():
                layer.call = partial(_followed, observer, path, layer, _certain(layer))
                # Keras passes `training` where the signature of `call` has it, which the wrapper hides.
            with _no_dropout_of_cells(with_names.values()):
                return self._model(self._given(arguments), training=training)
        finally:
            for layer in with_names.values():
                layer.__dict__.pop("call", None)

    def gradients(self, objective: Callable[[Callable[[Any], Any]], Any]) -> tuple[Any, dict[str, Any]]:
        """Differentiate the loss in evaluation mode. A weight that the loss does not depend on has a gradient of zeros."""

        def run(arguments: Any) -> Any:
            return self._model(self._given(arguments), training=False)

        weights = self._model.trainable_weights
        loss, found = _differentiated(lambda: objective(run), weights)
        return loss, {
            weight.path: keras.ops.zeros_like(weight.value)
            if gradient is None
            else keras.ops.convert_to_tensor(gradient)
            for weight, gradient in zip(weights, found, strict=True)
        }

    def predictor(self) -> Callable[[Any], Any]:
        """Return the forward pass in evaluation mode, compiled as `predict` of Keras compiles it on this backend."""
        model = self._model
        backend = keras.backend.backend()
        if backend == "tensorflow":
            import tensorflow as tf

            return tf.function(
                lambda arguments: model(self._given(arguments), training=False),
                jit_compile=bool(model.jit_compile),
                reduce_retracing=True,
            )
        if backend == "jax":
            compiled = sys.modules["jax"].jit(
                lambda trained, others, arguments: model.stateless_call(
                    trained, others, self._given(arguments), training=False
                )[0]
            )
            trained, others = _values(model.trainable_variables), _values(model.non_trainable_variables)
            return partial(compiled, trained, others)
        without_gradients: Any = sys.modules["torch"].inference_mode()
        run: Callable[[Any], Any] = without_gradients(lambda arguments: model(self._given(arguments), training=False))
        return run

    def updater(self, made: Callable[[Any], Any]) -> KerasUpdater:
        """Return an optimizer of keras.optimizers."""
        return KerasUpdater(self._model, made(self._model))

    def _given(self, arguments: Any) -> Any:
        """Return the inputs as the model takes them: one tensor alone, several by name if it names them, else in their order."""
        if not isinstance(arguments, dict):
            return arguments
        if len(arguments) == 1 and not isinstance(getattr(self._model, "input", None), dict):
            return next(iter(arguments.values()))
        names = getattr(self._model, "input_names", None) or []
        if isinstance(getattr(self._model, "input", None), dict) or not names:
            return arguments
        return [arguments[name] for name in names] if set(names) == set(arguments) else [*arguments.values()]


def _values(variables: Iterable[Any]) -> list[Any]:
    return [variable.value for variable in variables]


def compute_in_float64() -> bool:
    """Let the layers that are made from now on compute in float64. False: Keras would round to float32 in between."""
    if keras.config.backend() == "jax":
        sys.modules["jax"].config.update("jax_enable_x64", True)
    keras.utils.clear_session()
    keras.config.set_floatx("float64")
    keras.config.set_dtype_policy("float64")
    # A table of Keras lets operations on float64 return float32, on all backends but TensorFlow.
    table = getattr(sys.modules.get("keras.src.backend.common.dtypes"), "BIT64_TO_BIT32_DTYPE", {})
    table["float64"] = "float64"
    return str(keras.backend.result_type("float64", "float32")) == "float64"


class KerasUpdater:
    """An optimizer of Keras; its schedule, if it has one, goes on by itself."""

    def __init__(self, model: Any, made: Any) -> None:
        if not isinstance(made, keras.optimizers.Optimizer):
            raise SideError(f"optimizer() returned a {type(made).__name__}. Return an optimizer of keras.optimizers.")
        self._model, self._optimizer = model, made
        constants = made.get_config()
        self.settings: dict[str, list[Any]] = {"rule": [type(made).__name__]}
        for name, key in _SETTINGS.items():
            if isinstance(constants.get(key), (int, float)):
                self.settings[name] = [constants[key]]

    def apply(self, gradients: Mapping[str, np.ndarray]) -> None:
        """Do one update of the weights that have a gradient."""
        named = {weight.path: weight for weight in self._model.trainable_weights if weight.path in gradients}
        found = [_like(gradients[path].reshape(weight.shape), weight) for path, weight in named.items()]
        self._optimizer.apply(found, list(named.values()))


# Words that all frameworks share -> keys of an optimizer's configuration.
_SETTINGS = {
    "learning rate": "learning_rate",
    "momentum": "momentum",
    "nesterov": "nesterov",
    "beta1": "beta_1",
    "beta2": "beta_2",
    "epsilon": "epsilon",
    "weight decay": "weight_decay",
}


def _differentiated(loss_of: Callable[[], Any], weights: list[Any]) -> tuple[Any, list[Any]]:
    """Return a loss and its gradients by Keras' backend."""
    backend = keras.backend.backend()
    if backend == "tensorflow":
        import tensorflow as tf

        with tf.GradientTape() as tape:
            loss = loss_of()
        return loss, tape.gradient(
            loss, [each.value for each in weights], unconnected_gradients=tf.UnconnectedGradients.ZERO
        )
    if backend == "torch":
        for weight in weights:
            weight.value.grad = None
        loss = loss_of()
        loss.backward()
        return loss, [weight.value.grad for weight in weights]
    raise SideError(f"Gradients of Keras on the backend {backend} are not followed; use tensorflow or torch.")


def _certain(layer: Any) -> Callable[..., Any]:
    """Return what a layer computes; a random one returns what it gets, as in evaluation mode."""
    if isinstance(layer, _RANDOM):
        return lambda inputs, *_, **__: inputs
    original: Callable[..., Any] = layer.call
    return original


_RANDOM = tuple(
    getattr(keras.layers, name)
    for name in (
        "Dropout",
        "SpatialDropout1D",
        "SpatialDropout2D",
        "SpatialDropout3D",
        "AlphaDropout",
        "GaussianDropout",
        "GaussianNoise",
    )
)
_RATES = ("dropout", "recurrent_dropout")


@contextlib.contextmanager
def _no_dropout_of_cells(layers: Iterable[Any]) -> Iterator[None]:
    """Let recurrent cells drop nothing."""
    cells = [
        each
        for each in layers
        if isinstance(each, (keras.layers.LSTMCell, keras.layers.GRUCell, keras.layers.SimpleRNNCell))
    ]
    known = [(cell, name, getattr(cell, name)) for cell in cells for name in _RATES]
    try:
        for cell, name, _ in known:
            setattr(cell, name, 0.0)
        yield
    finally:
        for cell, name, value in known:
            setattr(cell, name, value)


def _layers(layer: Any, prefix: str) -> Iterator[tuple[str, Any]]:
    """Yield every layer below another with its path, each once."""
    seen: set[int] = set()
    todo = [(f"{prefix}{each.name}", each) for each in _children(layer)]
    while todo:
        path, each = todo.pop(0)
        if id(each) in seen:
            continue
        seen.add(id(each))
        if not isinstance(each, keras.layers.InputLayer):
            yield path, each
        todo += [(f"{path}/{child.name}", child) for child in _children(each)]


def _children(layer: Any) -> list[Any]:
    return [each for each in layer._layers if isinstance(each, keras.layers.Layer)]


def _followed(
    observer: Observer, path: str, layer: Any, original: Callable[..., Any], *arguments: Any, **named: Any
) -> Any:
    kind, settings = described(layer)
    own = {each.name: each.path for each in layer._trainable_variables + layer._non_trainable_variables}
    call = Call("", path, type(layer).__name__, kind, settings, own)
    arguments, named = observer.entered(call, (arguments, named))
    try:
        result = original(*arguments, **named)
    except BaseException:
        observer.failed()
        raise
    return observer.left(result)


def described(layer: Any) -> tuple[str, dict[str, Any]]:
    """Return what a layer computes and its constants, in words that all frameworks share."""
    layers = keras.layers
    if isinstance(layer, layers.LayerNormalization):
        return "layer_norm", {"epsilon": layer.epsilon}
    if isinstance(layer, layers.BatchNormalization):
        return "batch_norm", {"epsilon": layer.epsilon, "momentum": 1 - layer.momentum}
    if isinstance(layer, layers.GroupNormalization):
        return "group_norm", {"epsilon": layer.epsilon, "groups": layer.groups}
    if isinstance(layer, (layers.Dense, layers.EinsumDense)):
        return "dense", {"activation": _activation(layer)}
    if isinstance(layer, (layers.Conv1D, layers.Conv2D, layers.Conv3D)):
        return "convolution", {
            "stride": list(layer.strides),
            "padding": layer.padding,
            "dilation": list(layer.dilation_rate),
            "groups": layer.groups,
            "activation": _activation(layer),
        }
    if isinstance(layer, (*_MAX_POOLS, layers.AveragePooling1D, layers.AveragePooling2D, layers.AveragePooling3D)):
        return "pooling", {
            "kind": "maximum" if isinstance(layer, _MAX_POOLS) else "mean",
            "window": _listed(layer.pool_size),
            "stride": _listed(layer.strides),
            "padding": layer.padding,
            "size": "down",
            "mean over": "the places that are there",
        }
    if isinstance(layer, layers.Embedding):
        return "embedding", {}
    if isinstance(layer, layers.MultiHeadAttention):
        return "attention", {}
    if isinstance(layer, layers.LSTM):
        return "lstm", {}
    if isinstance(layer, layers.GRU):
        return "gru", {"reset_after": layer.reset_after}
    return "", {}


def _listed(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


def _activation(layer: Any) -> str:
    found = getattr(layer.activation, "__name__", "")
    return "" if found == "linear" else found
