"""Haiku: transformed functions with their parameters, and their state where they have one; all modules are followed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import haiku as hk
import jax

from steelyard_worker.port.following import followed
from steelyard_worker.port.objects import jax_tensors
from steelyard_worker.port.objects.jax_models import OfVariables
from steelyard_worker.port.observed import Call

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np

    from steelyard_worker.port.observed import Observer

# A weight of this name is (inputs, outputs), and a convolution's has its outputs last.
ROLES = {"w": "kernel", "embeddings": "weight", "offset": "bias"}
STATE = "state"


class HaikuFunction(OfVariables):
    """`hk.transform(function)` with its parameters, or `hk.transform_with_state(function)` with parameters and state."""

    kind = "haiku.Transformed"
    without_randomness = False
    """Whether a function trains is an argument of the user's own."""

    def __init__(self, transformed: Any, parameters: Any, state: Any = None) -> None:
        self._has_state = isinstance(transformed, hk.TransformedWithState)
        tree = {"params": parameters, STATE: state or {}} if self._has_state else {"params": parameters}
        super().__init__(transformed, tree)
        self.bridge = jax_tensors.BRIDGE

    def tensors(self) -> Any:
        """Yield the leaves of the trees; those of the state are not trained."""
        for name, leaf, _ in super().tensors():
            yield name, leaf, not name.startswith(f"{STATE}/")

    def place(self, arrays: dict[str, np.ndarray]) -> dict[str, Any]:  # type: ignore[override]
        """Return arrays of JAX; floats in the dtype of the parameters."""
        return jax_tensors.placed(dict(arrays), jax.tree_util.tree_leaves(self._parameters))

    def forward(self, arguments: Any, observer: Observer | None, training: bool) -> Any:
        """Apply the function without compiling it. Whether it trains is an argument of the user's own, given by `inputs`."""
        del training
        trees = [self._parameters["params"], *([self._parameters[STATE]] if self._has_state else [])]
        leaves = {name: leaf for name, leaf, _ in self.tensors()}

        def intercept(following: Callable[..., Any], given: Any, named: Any, context: Any) -> Any:
            if observer is None or context.method_name != "__call__":
                return following(*given, **named)
            return followed(observer, _call(context.module, leaves), following, given, named)

        given = arguments if isinstance(arguments, (dict, tuple)) else (arguments,)
        in_order = tuple(given.values()) if isinstance(given, dict) else given
        with jax.disable_jit(), hk.intercept_methods(intercept):
            result = self._function.apply(*trees, None, *in_order)
        return result[0] if self._has_state else result


def _call(module: Any, leaves: dict[str, Any]) -> Call:
    path = module.module_name
    own = {}
    for tree in ("params", STATE):
        for name in leaves:
            before, _, role = name.rpartition("/")
            if before == f"{tree}/{path}":
                own[ROLES.get(role, role)] = name
    own |= _averages(module, path, leaves)
    return Call("", path, type(module).__name__, *described(module), tensors=own)


def _averages(module: Any, path: str, leaves: dict[str, Any]) -> dict[str, str]:
    """Return the statistics of a batch norm, which lie in modules below it."""
    if not isinstance(module, hk.BatchNorm):
        return {}
    names = {"mean": f"{STATE}/{path}/~/mean_ema/average", "variance": f"{STATE}/{path}/~/var_ema/average"}
    return {role: name for role, name in names.items() if name in leaves}


def described(module: Any) -> tuple[str, dict[str, Any]]:
    """Return what a module computes and its constants, in words that all frameworks share."""
    for types, kind, settings in _KINDS:
        if isinstance(module, types):
            return kind, settings(module)
    return "", {}


def _convolution(module: Any) -> dict[str, Any]:
    return {
        "stride": list(module.stride),
        "padding": module.padding if isinstance(module.padding, str) else [before for before, _ in module.padding],
        "dilation": list(module.kernel_dilation),
        "groups": module.feature_group_count,
    }


def _pooling(module: Any) -> dict[str, Any]:
    return {
        "kind": "maximum" if isinstance(module, hk.MaxPool) else "mean",
        "padding": module.padding,
        "mean over": "the places that are there",
    }


# Classes, kind, and the settings that a module of it has.
_KINDS: list[tuple[Any, str, Callable[[Any], dict[str, Any]]]] = [
    (hk.LayerNorm, "layer_norm", lambda m: {"epsilon": m.eps}),
    (hk.RMSNorm, "rms_norm", lambda m: {"epsilon": m.eps}),
    (hk.GroupNorm, "group_norm", lambda m: {"epsilon": m.eps, "groups": m.groups}),
    (hk.BatchNorm, "batch_norm", lambda m: {"epsilon": m.eps}),
    (hk.Linear, "dense", lambda _: {}),
    (hk.ConvND, "convolution", _convolution),
    (hk.Embed, "embedding", lambda _: {}),
    ((hk.MaxPool, hk.AvgPool), "pooling", _pooling),
]
