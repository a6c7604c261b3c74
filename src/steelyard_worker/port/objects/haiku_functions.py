"""Haiku: transformed functions with their parameters, and their state where they have one; all modules are followed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import haiku as hk

from steelyard_worker.port.calling import in_order
from steelyard_worker.port.errors import SideError
from steelyard_worker.port.following import followed
from steelyard_worker.port.kinds import described
from steelyard_worker.port.objects import jax_tensors
from steelyard_worker.port.objects.jax_models import OfVariables
from steelyard_worker.port.observed import Call

if TYPE_CHECKING:
    from collections.abc import Callable

    from steelyard_worker.port.kinds import Known
    from steelyard_worker.port.observed import Observer

# A weight of this name is (inputs, outputs), and a convolution's has its outputs last.
ROLES = {"w": "kernel", "embeddings": "weight", "offset": "bias"}
STATE = "state"


class HaikuFunction(OfVariables):
    """`hk.transform(function)` with its parameters, or `hk.transform_with_state(function)` with parameters and state."""

    kind = "haiku.Transformed"
    without_randomness = False
    """Whether a function trains is an argument of the user's own."""

    def __init__(self, transformed: Any, *trees: Any) -> None:
        self._has_state = isinstance(transformed, hk.TransformedWithState)
        names = ("params", STATE) if self._has_state else ("params",)
        if len(trees) != len(names):
            made_by = "hk.transform_with_state" if self._has_state else "hk.transform"
            raise SideError(
                f"A function of {made_by} is returned as (transformed, {', '.join(names)}), and model() returned "
                f"{'it alone' if not trees else f'{1 + len(trees)} objects'}."
            )
        super().__init__(transformed, dict(zip(names, trees, strict=True)))

    def tensors(self) -> Any:
        """Yield the leaves of the trees; those of the state are not trained."""
        for name, leaf, _ in super().tensors():
            yield name, leaf, not name.startswith(f"{STATE}/")

    def forward(self, arguments: Any, observer: Observer | None, training: bool) -> Any:
        """Apply the function without compiling it. Whether it trains is an argument of the user's own, given by `inputs`."""
        del training
        trees = [self._parameters["params"], *([self._parameters[STATE]] if self._has_state else [])]
        leaves = {name: leaf for name, leaf, _ in self.tensors()}

        def intercept(following: Callable[..., Any], given: Any, named: Any, context: Any) -> Any:
            if observer is None or context.method_name != "__call__":
                return following(*given, **named)
            return followed(observer, _call(context.module, leaves), following, given, named)

        with jax_tensors.eagerly(observer), hk.intercept_methods(intercept):
            result = self._function.apply(*trees, None, *in_order(arguments))
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
    return Call("", path, type(module).__name__, *described(module, _KINDS), tensors=own)


def _averages(module: Any, path: str, leaves: dict[str, Any]) -> dict[str, str]:
    """Return the statistics of a batch norm, which lie in modules below it."""
    if not isinstance(module, hk.BatchNorm):
        return {}
    names = {"mean": f"{STATE}/{path}/~/mean_ema/average", "variance": f"{STATE}/{path}/~/var_ema/average"}
    return {role: name for role, name in names.items() if name in leaves}


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


_KINDS: Known = [
    (hk.LayerNorm, "layer_norm", lambda m: {"epsilon": m.eps}),
    (hk.RMSNorm, "rms_norm", lambda m: {"epsilon": m.eps}),
    (hk.GroupNorm, "group_norm", lambda m: {"epsilon": m.eps, "groups": m.groups}),
    (hk.BatchNorm, "batch_norm", lambda m: {"epsilon": m.eps}),
    (hk.Linear, "dense", lambda _: {}),
    (hk.ConvND, "convolution", _convolution),
    (hk.Embed, "embedding", lambda _: {}),
    ((hk.MaxPool, hk.AvgPool), "pooling", _pooling),
]
