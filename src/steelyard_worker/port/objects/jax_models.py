"""JAX: Flax linen modules with their variables, models of transformers, and plain functions with a tree of parameters."""

from __future__ import annotations

import contextlib
import sys
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp

from steelyard_worker.port.calling import called, in_order, mode_of
from steelyard_worker.port.errors import SideError
from steelyard_worker.port.objects import jax_tensors
from steelyard_worker.port.observed import Call

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    import numpy as np

    from steelyard_worker.port.objects.base import Model
    from steelyard_worker.port.observed import Observer


BY_FUNCTION = "Return (function, module): the function gets the module and the inputs."
"""What to do with a module of NNX or Equinox that cannot be called by itself."""


def wrap(value: Any) -> Model | None:
    """Return a model of JAX behind the interface of all, or None."""
    linen = sys.modules.get("flax.linen")
    if linen is not None:
        if isinstance(value, tuple) and len(value) == 2 and isinstance(value[0], linen.Module):
            return LinenModule(*value)
        if isinstance(getattr(value, "module", None), linen.Module) and hasattr(value, "params"):
            return PretrainedModel(value)
    for known in (_nnx, _equinox, _haiku):
        if (model := known(value)) is not None:
            return model
    if isinstance(value, tuple) and len(value) == 2 and callable(value[0]):
        return Function(*value)
    return None


def _of_function(value: Any, kind: type) -> tuple[Any, Any]:
    """Return a module and the function that is called with it, if a value is a module or (function, module)."""
    if isinstance(value, tuple) and len(value) == 2 and callable(value[0]) and isinstance(value[1], kind):
        return value[1], value[0]
    return (value, None) if isinstance(value, kind) else (None, None)


def _nnx(value: Any) -> Model | None:
    nnx = sys.modules.get("flax.nnx")
    module, function = _of_function(value, nnx.Module) if nnx is not None else (None, None)
    if module is None:
        return None
    from steelyard_worker.port.objects.nnx_module import NNXModule

    return NNXModule(module, function)


def _equinox(value: Any) -> Model | None:
    equinox = sys.modules.get("equinox")
    if equinox is not None and isinstance(value, tuple) and any(isinstance(each, equinox.nn.State) for each in value):
        raise SideError(
            "model() returned a module of Equinox with its state. Return (function, module): the function gets the module and "
            "the inputs, gives it the state, and returns the outputs alone."
        )
    module, function = _of_function(value, equinox.Module) if equinox is not None else (None, None)
    if module is None:
        return None
    from steelyard_worker.port.objects.equinox_module import EquinoxModule

    return EquinoxModule(module, function)


def _haiku(value: Any) -> Model | None:
    haiku = sys.modules.get("haiku")
    if haiku is None or not isinstance(value, tuple) or not value:
        return None
    transformed = haiku.Transformed, haiku.TransformedWithState
    parts = (value,) if isinstance(value, transformed) else value  # such a function is a tuple itself
    if not isinstance(parts[0], transformed):
        return None
    from steelyard_worker.port.objects.haiku_functions import HaikuFunction

    return HaikuFunction(*parts)


class Function:
    """A function of a tree of parameters and inputs. Only its parameters and its outputs can be seen."""

    kind = "function"
    without_randomness = False
    """A function has no training mode that could be asked for."""

    def __init__(self, function: Any, parameters: Any) -> None:
        self._function, self._parameters = function, parameters
        self.bridge = jax_tensors.BRIDGE
        _check_leaves(parameters)

    def tensors(self) -> Iterator[tuple[str, Any, bool]]:
        """Yield the leaves of the tree, by their keys joined with a slash."""
        for name, leaf in named_leaves(self._parameters):
            yield name, leaf, not name.startswith("batch_stats/")

    def load(self, arrays: Mapping[str, np.ndarray]) -> None:
        """Replace leaves of the tree."""

        def new(path: Any, leaf: Any) -> Any:
            array = arrays.get(_name(path))
            return leaf if array is None else jnp.asarray(array, dtype=leaf.dtype).reshape(leaf.shape)

        self._parameters = jax.tree_util.tree_map_with_path(new, self._parameters)

    def double(self) -> bool:
        """Convert the tree to float64. A module whose own dtype is float32 still computes in it, which its outputs tell."""
        jax.config.update("jax_enable_x64", True)
        self._parameters = jax.tree_util.tree_map(jax_tensors.doubled, self._parameters)
        return True

    def place(self, arrays: Mapping[str, np.ndarray]) -> dict[str, Any]:
        """Return arrays of JAX; floats in the dtype of the parameters."""
        return jax_tensors.placed(arrays, jax.tree_util.tree_leaves(self._parameters))

    def forward(self, arguments: Any, observer: Observer | None, training: bool) -> Any:
        """Call the function with the parameters and the inputs in their order."""
        del observer, training
        return self._function(self._parameters, *in_order(arguments))

    def gradients(self, objective: Callable[[Callable[[Any], Any]], Any]) -> tuple[Any, dict[str, Any]]:
        """Differentiate the loss by the trained leaves."""

        def loss_of(trained: Any) -> Any:
            before, self._parameters = self._parameters, self._with_trained(trained)
            try:
                return objective(lambda arguments: self.forward(arguments, None, training=False))
            finally:
                self._parameters = before

        loss, gradients = jax.value_and_grad(loss_of, allow_int=True)(self._trained())
        return loss, {self._prefix + name: leaf for name, leaf in named_leaves(gradients)}

    def predictor(self) -> Callable[[Any], Any]:
        """Return the forward pass in evaluation mode, compiled by jax.jit."""

        def run(parameters: Any, arguments: Any) -> Any:
            before, self._parameters = self._parameters, parameters
            try:
                return self.forward(arguments, None, training=False)
            finally:
                self._parameters = before

        compiled = jax.jit(run)
        return lambda arguments: compiled(self._parameters, arguments)

    def updater(self, made: Callable[[Any], Any]) -> OptaxUpdater:
        """Return a transformation of optax."""
        return OptaxUpdater(self, made(self._trained()))

    _prefix = ""
    """Of the names of trained leaves."""

    def _trained(self) -> Any:
        return self._parameters

    def _with_trained(self, trained: Any) -> Any:
        return trained

    def update(self, change: Callable[[Any], Any]) -> None:
        """Replace the trained leaves by what `change` makes of them."""
        self._parameters = self._with_trained(change(self._trained()))


class OptaxUpdater:
    """A gradient transformation of optax. What its constants are cannot be read from it."""

    def __init__(self, model: Function, made: Any) -> None:
        if not callable(getattr(made, "init", None)) or not callable(getattr(made, "update", None)):
            raise SideError(f"optimizer() returned a {type(made).__name__}. Return a transformation of optax.")
        self.settings: dict[str, list[Any]] = {}
        self._model, self._rule, self._state = model, made, made.init(model._trained())

    def apply(self, gradients: Mapping[str, np.ndarray]) -> None:
        """Do one update."""

        def changed(trained: Any) -> Any:
            def gradient(path: Any, leaf: Any) -> Any:
                array = gradients.get(self._model._prefix + _name(path))
                return jnp.zeros_like(leaf) if array is None else jnp.asarray(array, leaf.dtype).reshape(leaf.shape)

            tree = jax.tree_util.tree_map_with_path(gradient, trained)
            updates, self._state = self._rule.update(tree, self._state, trained)
            return jax.tree_util.tree_map(lambda leaf, step: jnp.asarray(leaf + step, leaf.dtype), trained, updates)

        self._model.update(changed)


class OfVariables(Function):
    """A model whose leaves are in collections, of which `params` is trained."""

    without_randomness = True
    _prefix = "params/"

    def _trained(self) -> Any:
        return self._parameters["params"]

    def _with_trained(self, trained: Any) -> Any:
        return {**self._parameters, "params": trained}


class LinenModule(OfVariables):
    """A Flax linen module with its variables."""

    kind = "flax.linen.Module"

    def __init__(self, module: Any, variables: Any) -> None:
        super().__init__(None, variables if "params" in variables else {"params": variables})
        self._module = module

    def double(self) -> bool:
        """Convert the variables, and the dtype in which the module computes."""
        self._module = _computing_in_float64(self._module)
        return super().double()

    def forward(self, arguments: Any, observer: Observer | None, training: bool) -> Any:
        """Apply the module. `training` reaches it if its __call__ has an argument `train`, `training` or `deterministic`."""
        named = mode_of(type(self._module).__call__, training)
        changing = [name for name in self._parameters if name != "params"] if training else []

        def apply(*positional: Any, **by_name: Any) -> Any:
            if not changing:
                return self._module.apply(self._parameters, *positional, **by_name, **named)
            result, changed = self._module.apply(self._parameters, *positional, **by_name, **named, mutable=changing)
            self._parameters = {**self._parameters, **changed}
            return result

        with _followed(observer):
            return called(apply, arguments, self._module.__call__)


class PretrainedModel(OfVariables):
    """A model of transformers in Flax."""

    kind = "transformers.FlaxPreTrainedModel"

    def __init__(self, model: Any) -> None:
        super().__init__(None, {"params": model.params})
        self._model = model

    def double(self) -> bool:
        """Convert the parameters, and the dtype in which the module computes."""
        self._model._module = _computing_in_float64(self._model.module)
        return super().double()

    def forward(self, arguments: Any, observer: Observer | None, training: bool) -> Any:
        """Call the model with its parameters."""
        with _followed(observer), _no_dropout_of(self._model.config):
            return called(
                lambda *a, **k: self._model(*a, **k, params=self._parameters["params"], train=training),
                arguments,
                type(self._model).__call__,
            )


def _computing_in_float64(module: Any) -> Any:
    """Return the module with its field `dtype` set, where it has one; without, Flax computes in the dtype of what it gets."""
    return module.clone(dtype=jnp.float64) if getattr(module, "dtype", None) is not None else module


@contextlib.contextmanager
def _followed(observer: Observer | None) -> Iterator[None]:
    """Let the observer follow every `__call__` of a linen module below the outermost one; dropout returns what it gets."""
    from flax import linen

    def intercept(following: Any, arguments: Any, named: Any, context: Any) -> Any:
        if context.method_name != "__call__":
            return following(*arguments, **named)
        _begin_in_float64(context.module)
        if isinstance(context.module, linen.Dropout):
            return arguments[0]
        if isinstance(context.module, linen.MultiHeadDotProductAttention):
            object.__setattr__(context.module, "dropout_rate", 0.0)
        if observer is None or not context.module.path or _is_traced(arguments, named):
            return following(*arguments, **named)
        module = context.module
        path = "/".join(module.path)
        kind, settings = described(module)
        call = Call("", path, type(module).__name__, kind, settings, _own(module, path))
        arguments, named = observer.entered(call, (arguments, named))
        try:
            result = following(*arguments, **named)
        except BaseException:
            observer.failed()
            raise
        return observer.left(result)

    with linen.intercept_methods(intercept):
        yield


@contextlib.contextmanager
def _no_dropout_of(config: Any) -> Iterator[None]:
    """Let a model of transformers drop nothing: its attention draws what to drop by itself, without a module for it."""
    rates = {name: value for name, value in vars(config).items() if "drop" in name and isinstance(value, float)}
    try:
        for name in rates:
            setattr(config, name, 0.0)
        yield
    finally:
        for name, value in rates.items():
            setattr(config, name, value)


def _begin_in_float64(module: Any) -> None:
    """Let a recurrent layer begin with zeros in the dtype of its parameters; they have that of its cell's own setting."""
    cell = _cell(module)
    if jax.config.jax_enable_x64 and getattr(cell, "param_dtype", None) == jnp.float32:
        object.__setattr__(cell, "param_dtype", jnp.float64)


def _cell(module: Any) -> Any:
    """Return the cell that a recurrent layer of Flax scans; None for any other module."""
    from flax import linen

    return module.cell if isinstance(module, linen.RNN) and module.cell.scope is not None else None


def _is_traced(*values: Any) -> bool:
    """Return whether a module is called inside of a compiled function or a scan, where there are no numbers to look at."""
    return any(isinstance(leaf, jax.core.Tracer) for leaf in jax.tree_util.tree_leaves(values))


def _own(module: Any, path: str) -> dict[str, str]:
    """Return the module's own leaves in all collections, such as params/encoder/norm/scale, and those of a cell that it scans."""
    found = {}
    if (cell := _cell(module)) is not None:
        for leaf, _ in jax.tree_util.tree_flatten_with_path(dict(cell.variables.get("params", {})))[0]:
            found[f"cell/{_name(leaf)}"] = f"params/{'/'.join(cell.path)}/{_name(leaf)}"
    for collection, tree in module.variables.items():
        for role, leaf in tree.items():
            if not hasattr(leaf, "items"):
                found[role] = f"{collection}/{path}/{role}"
    return found


def described(module: Any) -> tuple[str, dict[str, Any]]:
    """Return what a module computes and its constants, in words that all frameworks share."""
    from flax import linen

    if isinstance(module, linen.LayerNorm):
        return "layer_norm", {"epsilon": module.epsilon}
    if isinstance(module, linen.BatchNorm):
        return "batch_norm", {"epsilon": module.epsilon, "momentum": 1 - module.momentum}
    if isinstance(module, linen.GroupNorm):
        return "group_norm", {"epsilon": module.epsilon, "groups": module.num_groups}
    if isinstance(module, getattr(linen, "RMSNorm", ())):
        return "rms_norm", {"epsilon": module.epsilon}
    if isinstance(module, (linen.Dense, linen.DenseGeneral)):
        return "dense", {}
    if isinstance(module, linen.Conv):
        return "convolution", {
            "stride": module.strides,
            "padding": module.padding if isinstance(module.padding, (str, int)) else list(module.padding),
            "groups": module.feature_group_count,
        }
    if isinstance(module, linen.Embed):
        return "embedding", {}
    if isinstance(module, linen.MultiHeadDotProductAttention):
        return "attention", {}
    if isinstance(_cell(module), (linen.LSTMCell, linen.OptimizedLSTMCell)):
        return "lstm", {}
    return "", {}


def named_leaves(tree: Any) -> list[tuple[str, Any]]:
    """Return the leaves of a tree with their keys, joined with a slash."""
    return [(_name(path), leaf) for path, leaf in jax.tree_util.tree_flatten_with_path(tree)[0]]


def _check_leaves(parameters: Any) -> None:
    """Refuse parameters that are not all arrays with values, such as a function or a setting among them."""
    named = named_leaves(parameters)
    jax_tensors.check_values(named)
    for name, leaf in named:
        if not jax_tensors.is_array(leaf):
            where = f"'{name}' among the parameters" if name else "what model() returned with a function"
            raise SideError(
                f"{where} is a {type(leaf).__name__}. The parameters of a function are a tree of arrays, and nothing else."
            )


def _name(path: Any) -> str:
    return "/".join(str(getattr(key, "key", getattr(key, "idx", getattr(key, "name", key)))) for key in path)
