"""Convolutions, pooling, flattening: padding, strides, flipped kernels, sizes rounded up, which places a mean counts."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from steelyard.ports.causes import Family, Place, Settings
from steelyard.ports.causes.activations import FUNCTIONS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from steelyard.ports.given_inputs import Array

SECOND, LAST = "second", "last"
SAME, NONE = "same", "none"
"""As many outputs as inputs over the stride, with the larger half of the padding at the end; and no padding."""
EXCHANGED = "with height and width exchanged"
AFTER = ("ReLU", "no activation")


def _moved(x: Array, channels: str) -> Array:
    """Return an array with its channels last."""
    return np.moveaxis(x, 1, -1) if channels == SECOND else x


def _back(x: Array, channels: str) -> Array:
    return np.moveaxis(x, -1, 1) if channels == SECOND else x


def _amounts(padding: Any, size: int, window: int, stride: int, rounded_up: bool = False) -> tuple[int, int]:
    """Return how many places are added before and after an axis. `window`: with dilation."""
    if padding == SAME:
        total = max(0, (math.ceil(size / stride) - 1) * stride + window - size)
        return total // 2, total - total // 2
    before = 0 if padding == NONE else int(padding)
    if not rounded_up:
        return before, before
    steps = math.ceil((size + 2 * before - window) / stride)
    if (steps * stride) >= size + before:  # the last window would begin in the padding
        steps -= 1
    return before, max(before, steps * stride + window - size - before)


def _windows(x: Array, window: Sequence[int], stride: Sequence[int], dilation: Sequence[int]) -> Array:
    """Return all windows of a padded array with channels last: batch, places, channels, window."""
    axes = tuple(range(1, x.ndim - 1))
    reach = [(extent - 1) * step + 1 for extent, step in zip(window, dilation, strict=True)]
    found: Array = np.lib.stride_tricks.sliding_window_view(x, reach, axes)
    places = tuple(slice(None, None, step) for step in stride)
    inside = tuple(slice(None, None, step) for step in dilation)
    return found[(slice(None), *places, slice(None), *inside)]


def _convolution(place: Place, settings: Settings) -> Array | None:
    weight = place.tensors.get("weight")  # outputs, inputs of a group, window
    if weight is None or weight.ndim < 3:
        return None
    x = _moved(place.inputs["input"], settings["channels"])
    groups, window = settings["groups"], weight.shape[2:]
    if x.ndim != weight.ndim or x.shape[-1] != weight.shape[1] * groups or weight.shape[0] % groups:
        return None
    stride, dilation = _each(settings["stride"], window), _each(settings["dilation"], window)
    reach = [(extent - 1) * step + 1 for extent, step in zip(window, dilation, strict=True)]
    amounts = [
        _amounts(settings["padding"], size, far, step)
        for size, far, step in zip(x.shape[1:-1], reach, stride, strict=True)
    ]
    if any(size + sum(pair) < far for size, pair, far in zip(x.shape[1:-1], amounts, reach, strict=True)):
        return None
    padded = np.pad(x, [(0, 0), *amounts, (0, 0)])
    kernel = _kernel(weight, settings["kernel"])
    if kernel.shape != weight.shape:
        return None
    found = _windows(padded, window, stride, dilation)
    inputs, outputs = weight.shape[1], weight.shape[0] // groups
    places = x.ndim - 2
    parts = []
    for group in range(groups):
        part = found.take(range(group * inputs, (group + 1) * inputs), -1 - places)
        own = kernel[group * outputs : (group + 1) * outputs]
        axes = tuple(range(part.ndim - places - 1, part.ndim))
        parts.append(np.tensordot(part, own, (axes, tuple(range(1, own.ndim)))))
    result = np.concatenate(parts, -1)
    bias = place.tensors.get("bias")
    if bias is not None:
        result = result + settings["bias"] * bias
    return _back(FUNCTIONS[settings["activation"]](result), settings["channels"])


def _kernel(weight: Array, how: str) -> Array:
    if how == EXCHANGED:
        return np.swapaxes(weight, -1, -2) if weight.ndim > 3 else weight
    return np.flip(weight, tuple(range(2, weight.ndim))) if how == "flipped" else weight


def _each(value: Any, window: Sequence[int]) -> tuple[int, ...]:
    values = tuple(value) if isinstance(value, (list, tuple)) else (value,) * len(window)
    return tuple(int(each) for each in values) if len(values) == len(window) else (1,) * len(window)


def _declared(place: Place, name: str, usual: Any) -> list[Any]:
    """Return what both modules declare of a setting, as hashable values; one that declares nothing has the usual value."""
    found = [each[name] for each in (place.left_settings, place.right_settings) if each.get(name) is not None]
    return [tuple(each) if isinstance(each, list) else each for each in found] + [usual]


def _paddings(place: Place) -> list[Any]:
    weight = place.tensors.get("weight")
    usual = [] if weight is None or weight.ndim < 3 else [weight.shape[2] // 2]
    found: list[Any] = []
    for value in _declared(place, "padding", NONE):
        if isinstance(value, str):
            found.append(SAME if value.lower() == "same" else NONE)
        elif isinstance(value, int):
            found.append(value or NONE)
        elif value and isinstance(value[0], int) and len(set(value)) == 1:
            found.append(value[0] or NONE)
    return [*found, *usual, SAME, NONE]


def _convolution_values(place: Place) -> Mapping[str, Sequence[Any]]:
    return {
        "padding": _paddings(place),
        "stride": _declared(place, "stride", 1),
        "dilation": _declared(place, "dilation", 1),
        "groups": _declared(place, "groups", 1),
        "channels": (SECOND, LAST),
        "kernel": ("as it is", "flipped", EXCHANGED),
        "bias": (1, 0),
        "activation": ("no activation", "ReLU"),
    }


def _words(name: str, value: Any) -> str:
    if name == "padding":
        if value in (SAME, NONE):
            return {SAME: "padding 'same' (more of it at the end)", NONE: "no padding"}[value]
        return f"padding {value} on both sides"
    if name == "bias":
        return "its bias" if value else "no bias"
    texts = {"kernel": f"the kernel {value}", "size": f"sizes rounded {value}", "mean over": f"a mean over {value}"}
    return texts.get(name, str(value) if name in ("activation", "kind") else f"{name} {value}")


def _pooling(place: Place, settings: Settings) -> Array | None:
    x = _moved(FUNCTIONS[settings["activation"]](place.inputs["input"]), settings["channels"])
    sizes = x.shape[1:-1]
    if not sizes:
        return None
    window, stride = _each(settings["window"], sizes), _each(settings["stride"], sizes)
    is_up, is_max = settings["size"] == "up", settings["kind"] == "maximum"
    amounts = [
        _amounts(settings["padding"], size, far, step, is_up)
        for size, far, step in zip(sizes, window, stride, strict=True)
    ]
    if any(size + sum(pair) < far for size, pair, far in zip(sizes, amounts, window, strict=True)):
        return None
    around = [(0, 0), *amounts, (0, 0)]
    found = _windows(np.pad(x, around, constant_values=-np.inf if is_max else 0.0), window, stride, (1,) * len(sizes))
    inside = tuple(range(-len(sizes), 0))
    if is_max:
        return _back(found.max(inside), settings["channels"])
    if settings["mean over"] == "the window":
        return _back(found.mean(inside), settings["channels"])
    there = _windows(np.pad(np.ones_like(x), around), window, stride, (1,) * len(sizes)).sum(inside)
    return _back(found.sum(inside) / there, settings["channels"])


def _pooling_values(place: Place) -> Mapping[str, Sequence[Any]]:
    """Return the values of all settings: those that a module declares first, then the known ones."""
    before, after = place.inputs["input"].shape, place.left.shape
    if len(before) != len(after) or len(before) < 3:
        return {"kind": ()}
    channels = [name for name, axis in ((SECOND, 1), (LAST, -1)) if before[axis] == after[axis]]
    windows = [each for value in (2, 3) for each in _alike(_declared(place, "window", value))]
    return {
        "kind": [*_declared(place, "kind", "maximum"), "mean"],
        "window": windows,
        "stride": [*_alike(_declared(place, "stride", 2)), 1],
        "padding": [*_paddings(place)[:-2], NONE, 1, SAME],
        "size": [*_declared(place, "size", "down"), "up"],
        "mean over": [*_declared(place, "mean over", "the window"), "the places that are there"],
        "channels": channels,
        "activation": AFTER if not place.left_settings else AFTER[::-1],
    }


def _alike(values: Sequence[Any]) -> list[Any]:
    """Return one number for an extent that is the same along all axes, as (2, 2) is 2."""
    return [each[0] if isinstance(each, tuple) and len(set(each)) == 1 else each for each in values]


def _everywhere(place: Place, settings: Settings) -> Array | None:
    """Return one number for each channel, from all its places."""
    x = _moved(FUNCTIONS[settings["activation"]](place.inputs["input"]), settings["channels"])
    places = tuple(range(1, x.ndim - 1))
    combine = {"mean": np.add, "maximum": np.maximum, "sum": np.add}[settings["kind"]]
    found: Array = combine.reduce(x, axis=places)
    if settings["kind"] == "mean":
        found = found / math.prod(x.shape[axis] for axis in places)
    return found.reshape(place.left.shape) if found.size == place.left.size else found  # axes of one place may be kept


def _everywhere_values(place: Place) -> Mapping[str, Sequence[Any]]:
    before, after = place.inputs["input"].shape, place.left.shape
    channels = [name for name, axis in ((SECOND, 1), (LAST, -1)) if before[axis] in after[1:]] or [SECOND]
    return {"kind": ("mean", "maximum", "sum"), "channels": channels, "activation": ("no activation", "ReLU")}


def _flat(place: Place, settings: Settings) -> Array | None:
    x = FUNCTIONS[settings["activation"]](place.inputs["input"])
    x = np.moveaxis(x, 1, -1) if settings["order"] == "channels last" else x
    return x.reshape(len(x), -1)


def _flat_values(place: Place) -> Mapping[str, Sequence[Any]]:
    del place
    return {"order": ("channels first", "channels last"), "activation": ("no activation", "ReLU")}


CONVOLUTION = Family("convolution", _convolution, _convolution_values, _words, samples=2)
POOLING = Family("pooling", _pooling, _pooling_values, _words, samples=2)
EVERYWHERE = Family("pooling of all places", _everywhere, _everywhere_values, _words, samples=2)
FLAT = Family("flattening", _flat, _flat_values, lambda _, value: str(value), samples=2)
"""Of pictures with channels second, which a model with channels last orders in another way."""
