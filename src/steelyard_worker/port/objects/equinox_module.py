"""Equinox: any eqx.Module; modules are followed by replacing `__call__` on their classes, under `jax.vmap` too."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import equinox as eqx

from steelyard_worker.port import attributes
from steelyard_worker.port.calling import called, check_callable, in_order
from steelyard_worker.port.following import classes_followed
from steelyard_worker.port.kinds import described
from steelyard_worker.port.objects import jax_tensors
from steelyard_worker.port.objects.jax_models import BY_FUNCTION, Function, named_leaves
from steelyard_worker.port.observed import Call

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from steelyard_worker.port.kinds import Known
    from steelyard_worker.port.observed import Observer


def _members(module: Any) -> Iterator[tuple[str, Any]]:
    for field in dataclasses.fields(module):
        if hasattr(module, field.name):
            yield from attributes.parts(field.name, getattr(module, field.name))


class EquinoxModule(Function):
    """An equinox.Module, called itself or by a function of it and the inputs, such as one with `jax.vmap`."""

    kind = "equinox.Module"

    def __init__(self, module: Any, function: Callable[..., Any] | None = None) -> None:
        if function is None:
            check_callable(module, BY_FUNCTION)
        arrays, self._rest = eqx.partition(module, jax_tensors.is_array)
        jax_tensors.check_values(named_leaves(self._rest))
        super().__init__(function, arrays)

    def forward(self, arguments: Any, observer: Observer | None, training: bool) -> Any:
        """Call the module without compiling it; modules below it report to the observer."""
        module = eqx.nn.inference_mode(eqx.combine(self._parameters, self._rest), value=not training)
        below = attributes.modules(module, lambda value: isinstance(value, eqx.Module), _members)
        classes = {type(each) for each in below.values()} if observer is not None else set()
        with jax_tensors.eagerly(observer), classes_followed(observer, classes, _path_of(below), _call):
            if self._function is None:
                return called(module, arguments, type(module).__call__)
            return self._function(module, *in_order(arguments))


def _path_of(below: dict[str, Any]) -> Callable[[Any], str]:
    """Return what finds a module's path: by itself; a copy, which `filter_jit` for one calls, by one of its arrays."""
    of_modules = {id(each): path for path, each in below.items()}
    of_arrays = {(type(each), id(array)): path for path, each in below.items() for array in _own(each).values()}

    def path_of(module: Any) -> str:
        if id(module) in of_modules:
            return of_modules[id(module)]
        found = (of_arrays.get((type(module), id(array)), "") for array in _own(module).values())
        return next(found, "")

    return path_of


def _own(module: Any) -> dict[str, Any]:
    return {role: value for role, value in _members(module) if jax_tensors.is_array(value)}


def _call(path: str, module: Any) -> Call:
    own = {role: f"{path}/{role}" for role in _own(module)}
    return Call("", path, type(module).__name__, *described(module, _KINDS), tensors=own)


def _convolution(module: Any) -> dict[str, Any]:
    padding = module.padding
    return {
        "stride": list(module.stride),
        "padding": padding if isinstance(padding, str) else [before for before, _ in padding],
        "dilation": list(module.dilation),
        "groups": module.groups,
    }


def _pooling(module: Any) -> dict[str, Any]:
    return {
        "kind": "maximum" if isinstance(module, _MAX_POOLS) else "mean",
        "window": list(module.kernel_size),
        "stride": list(module.stride),
        "padding": [before for before, _ in module.padding] if not isinstance(module.padding, str) else module.padding,
        "size": "up" if module.use_ceil else "down",
        "mean over": "the window",
    }


_MAX_POOLS = (eqx.nn.MaxPool1d, eqx.nn.MaxPool2d, eqx.nn.MaxPool3d)
_KINDS: Known = [
    (eqx.nn.LayerNorm, "layer_norm", lambda m: {"epsilon": m.eps}),
    (eqx.nn.RMSNorm, "rms_norm", lambda m: {"epsilon": m.eps}),
    (eqx.nn.GroupNorm, "group_norm", lambda m: {"epsilon": m.eps, "groups": m.groups}),
    (eqx.nn.BatchNorm, "batch_norm", lambda m: {"epsilon": m.eps, "momentum": 1 - m.momentum}),
    (eqx.nn.Linear, "dense", lambda _: {}),
    ((eqx.nn.Conv1d, eqx.nn.Conv2d, eqx.nn.Conv3d), "convolution", _convolution),
    (eqx.nn.Embedding, "embedding", lambda _: {}),
    (eqx.nn.Pool, "pooling", _pooling),
]
