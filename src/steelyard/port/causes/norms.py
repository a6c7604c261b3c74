"""Layer norm, root-mean-square norm and batch norm in evaluation: epsilon, where it stands, and which variance."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from steelyard.port.causes import Family, Place, Settings

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from steelyard.port.given_inputs import Array

EPSILONS = (1e-5, 1e-6, 1e-12, 1e-3, 1e-7, 1e-8, 0.0)
"""Defaults of PyTorch, Flax, BERT, Keras and MindSpore, and what authors write."""
INSIDE, OUTSIDE = "inside the root", "outside the root"


def _epsilons(place: Place) -> list[float]:
    declared = [
        each["epsilon"] for each in (place.left_settings, place.right_settings) if each.get("epsilon") is not None
    ]
    return [*declared, *EPSILONS]


def _scaled(normal: Array, place: Place, axis: int = -1) -> Array:
    shape = [1] * normal.ndim
    shape[axis] = -1
    weight, bias = place.tensors.get("weight"), place.tensors.get("bias")
    found = normal if weight is None else normal * weight.reshape(shape)
    return found if bias is None else found + bias.reshape(shape)


def _over(value: Array, variance: Array, settings: Settings) -> Array:
    epsilon: float = settings["epsilon"]
    root: Array = np.sqrt(variance) + epsilon if settings["place"] == OUTSIDE else np.sqrt(variance + epsilon)
    return value / root


def _layer_norm(place: Place, settings: Settings) -> Array | None:
    x = place.inputs["input"]
    mean = x.mean(-1, keepdims=True)
    return _scaled(_over(x - mean, x.var(-1, keepdims=True, ddof=settings["subtracted"]), settings), place)


def _rms_norm(place: Place, settings: Settings) -> Array | None:
    x = place.inputs["input"]
    normal = _over(x, (x * x).mean(-1, keepdims=True), settings)
    weight = place.tensors.get("weight")
    return normal if weight is None else normal * (weight + settings["added"])


def _batch_norm(place: Place, settings: Settings) -> Array | None:
    x, mean, variance = place.inputs["input"], place.tensors.get("mean"), place.tensors.get("variance")
    if mean is None or variance is None:
        return None
    # The channels of the left side's layout: PyTorch has them second, the others last.
    axis = 1 if x.ndim > 2 and x.shape[1] == mean.size and settings["channels"] == "second" else x.ndim - 1
    if x.shape[axis] != mean.size:
        return None
    shape = [1] * x.ndim
    shape[axis] = -1
    if settings["statistics"] == "of the batch":
        others = tuple(each for each in range(x.ndim) if each != axis)
        mean, variance = x.mean(others), x.var(others)
    return _scaled(_over(x - mean.reshape(shape), variance.reshape(shape), settings), place, axis)


def _layer_values(place: Place) -> Mapping[str, Sequence[Any]]:
    return {"epsilon": _epsilons(place), "place": (INSIDE, OUTSIDE), "subtracted": (0, 1)}


def _rms_values(place: Place) -> Mapping[str, Sequence[Any]]:
    return {"epsilon": _epsilons(place), "place": (INSIDE, OUTSIDE), "added": (0, 1)}


def _batch_values(place: Place) -> Mapping[str, Sequence[Any]]:
    return {
        "epsilon": _epsilons(place),
        "statistics": ("running", "of the batch"),
        "channels": ("second", "last"),
        "place": (INSIDE, OUTSIDE),
    }


def _words(name: str, value: Any) -> str:
    return {
        "epsilon": f"epsilon {value:g}" if isinstance(value, float) else "",
        "place": f"epsilon {value}",
        "subtracted": "the variance over n - 1" if value else "the variance over n",
        "added": "1 added to the scale" if value else "the scale as it is",
        "statistics": f"{value} statistics" if value == "running" else f"statistics {value}",
    }.get(name, f"{name} {value}")


FAMILIES = {
    "layer_norm": (
        Family("layer norm", _layer_norm, _layer_values, _words),
        Family("root-mean-square norm", _rms_norm, _rms_values, _words),
    ),
    "rms_norm": (Family("root-mean-square norm", _rms_norm, _rms_values, _words),),
    "batch_norm": (Family("batch norm", _batch_norm, _batch_values, _words),),
}
