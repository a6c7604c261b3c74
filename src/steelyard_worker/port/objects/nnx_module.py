"""Flax NNX: any nnx.Module; modules are followed by replacing `__call__` on their classes."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
from flax import nnx

from steelyard_worker.port import attributes
from steelyard_worker.port.calling import called, check_callable, in_order, mode_of
from steelyard_worker.port.following import classes_followed
from steelyard_worker.port.kinds import described
from steelyard_worker.port.objects import jax_tensors
from steelyard_worker.port.objects.jax_models import BY_FUNCTION
from steelyard_worker.port.observed import Call

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    import numpy as np

    from steelyard_worker.port.kinds import Known
    from steelyard_worker.port.observed import Observer

PATH = "steelyard_path"


def _members(module: Any) -> Iterator[tuple[str, Any]]:
    yield from attributes.members(module, lambda name: name.startswith("_pytree__"))


class NNXModule:
    """A flax.nnx.Module, called itself or by a function of it and the inputs."""

    kind = "flax.nnx.Module"

    def __init__(self, module: Any, function: Callable[..., Any] | None = None) -> None:
        if function is None:
            check_callable(module, BY_FUNCTION)
        self._module, self._function = module, function
        self.bridge = jax_tensors.BRIDGE
        for path, below in self._below().items():
            # Transformations such as nnx.jit call copies, which have the attributes of the originals.
            setattr(below, PATH, path)
        jax_tensors.check_values((name, each.get_value()) for name, each in self._variables().items())

    def tensors(self) -> Iterator[tuple[str, Any, bool]]:
        """Yield all variables by the attributes that lead to them; states of random generators are none."""
        for name, variable in self._variables().items():
            yield name, variable.get_value(), isinstance(variable, nnx.Param)

    def load(self, arrays: Mapping[str, np.ndarray]) -> None:
        """Set the values of variables."""
        named = self._variables()
        for name, array in arrays.items():
            old = named[name].get_value()
            named[name].set_value(jnp.asarray(array, dtype=old.dtype).reshape(old.shape))

    def double(self) -> bool:
        """Convert all variables to float64, and the dtype in which modules compute where they have one."""
        jax.config.update("jax_enable_x64", True)
        for variable in {id(each): each for each in self._variables().values()}.values():
            variable.set_value(jax_tensors.doubled(variable.get_value()))
        for module in [self._module, *self._below().values()]:
            if getattr(module, "dtype", None) is not None:
                module.dtype = jnp.float64
        return True

    def place(self, arrays: Mapping[str, np.ndarray]) -> dict[str, Any]:
        """Return arrays of JAX; floats in the dtype of the variables."""
        return jax_tensors.placed(dict(arrays), [tensor for _, tensor, _ in self.tensors()])

    def forward(self, arguments: Any, observer: Observer, training: bool) -> Any:
        """Call the module without compiling it; modules below it report to the observer."""
        (self._module.train if training else self._module.eval)()
        classes = {type(module) for module in self._below().values()}
        with jax.disable_jit(), classes_followed(observer, classes, lambda module: getattr(module, PATH, ""), _call):
            return self._called(self._module, arguments, training)

    def predictor(self) -> Callable[[Any], Any]:
        """Return the forward pass in evaluation mode, compiled by jax.jit; the state is split off once."""
        self._module.eval()
        graph, state = nnx.split(self._module)
        compiled = jax.jit(lambda state, arguments: self._called(nnx.merge(graph, state), arguments, False))
        return partial(compiled, state)

    def _called(self, module: Any, arguments: Any, training: bool) -> Any:
        if self._function is not None:
            return self._function(module, *in_order(arguments))
        own = type(module).__call__
        named = mode_of(own, training)
        return called(lambda *a, **k: module(*a, **k, **named), arguments, own)

    def _below(self) -> dict[str, Any]:
        return attributes.modules(self._module, lambda value: isinstance(value, nnx.Module), _members)

    def _variables(self) -> dict[str, Any]:
        modules = {"": self._module, **self._below()}
        return {
            f"{path}/{role}" if path else role: variable
            for path, module in modules.items()
            for role, variable in _own(module)
        }


def _own(module: Any) -> list[tuple[str, Any]]:
    """Return the variables of a module itself that hold an array of numbers, or the shape of one."""
    variables = [(role, value) for role, value in _members(module) if isinstance(value, nnx.Variable)]
    return [
        (role, value)
        for role, value in variables
        if not isinstance(value, nnx.RngState)
        and (jax_tensors.is_array(value.get_value()) or isinstance(value.get_value(), jax.ShapeDtypeStruct))
    ]


def _call(path: str, module: Any) -> Call:
    own = {role: f"{path}/{role}" for role, _ in _own(module)}
    return Call("", path, type(module).__name__, *described(module, _KINDS), tensors=own)


def _convolution(module: Any) -> dict[str, Any]:
    padding = module.padding if isinstance(module.padding, (str, int)) else list(module.padding)
    return {
        "stride": module.strides,
        "padding": padding,
        "dilation": module.kernel_dilation,
        "groups": module.feature_group_count,
    }


_KINDS: Known = [
    (nnx.LayerNorm, "layer_norm", lambda m: {"epsilon": m.epsilon}),
    (nnx.RMSNorm, "rms_norm", lambda m: {"epsilon": m.epsilon}),
    (nnx.GroupNorm, "group_norm", lambda m: {"epsilon": m.epsilon, "groups": m.num_groups}),
    (nnx.BatchNorm, "batch_norm", lambda m: {"epsilon": m.epsilon, "momentum": 1 - m.momentum}),
    ((nnx.Linear, nnx.LinearGeneral), "dense", lambda _: {}),
    (nnx.Conv, "convolution", _convolution),
    (nnx.Embed, "embedding", lambda _: {}),
]
