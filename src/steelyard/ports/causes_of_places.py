"""Which families of hypotheses fit a place where two sides part, and what they need from the passes of both."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from steelyard.ports.alignment import distance
from steelyard.ports.causes import Place, activations, attention, explain, norms, products, sums, windows
from steelyard.ports.names import words
from steelyard.ports.passes import load

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from steelyard.ports.causes import Cause, Family
    from steelyard.ports.given_inputs import Array
    from steelyard.ports.passes import Call
    from steelyard.ports.side_tensors import SideTensor

OF_KINDS = norms.FAMILIES | products.FAMILIES | {"convolution": (windows.CONVOLUTION,), "pooling": (windows.POOLING,)}
NEAR, FAR = 4, 12
"""So many modules before a place may be the one whose output an activation got, or that a connection or attention began at."""
MOST_CONNECTIONS = 8
# Roles of tensors in the words of the families.
ROLES = {"scale": "weight"}


def in_module(
    one: Call, other: Call, values: tuple[Array, Array, Array], tensors: Mapping[str, SideTensor], rounding: float
) -> tuple[Cause | None, list[str]]:
    """Explain a pair of modules that return different values for the same input; also name the families that were tried.

    `values`: the input, and both outputs, in the layout of the left side.
    """
    families = OF_KINDS.get(one.kind or other.kind, ())
    given, left, right = values
    place = Place({"input": _numbers(given)}, _own(one, tensors), left, right, one.settings, other.settings)
    return _first(families, place, rounding)


def before_module(
    earlier: Sequence[Call], left: Array, right: Array, rounding: float
) -> tuple[Cause | None, list[str]]:
    """Explain a module that receives different values, although all modules before it return the same.

    `earlier`: calls of the left side, the nearest first. `left`, `right`: what it receives.
    """
    tried: list[str] = []
    for family, inputs in _between(earlier, left):
        cause, names = _first((family,), Place(inputs, {}, left, right), rounding)
        tried += names
        if cause is not None:
            return cause, _distinct(tried)
    return None, _distinct(tried)


def _between(earlier: Sequence[Call], left: Array) -> Iterator[tuple[Family, dict[str, Array]]]:
    """Yield the families that fit what lies between two modules, with their inputs, the simplest first."""
    near = [(call, _numbers(load(call.outputs[0]))) for call in earlier[:NEAR]]
    for _, output in near:
        if output.shape == left.shape:
            yield activations.FAMILY, {"input": output}
        elif output.ndim == left.ndim > 2:
            yield windows.POOLING, {"input": output}
    dense = [call for call in earlier[:FAR] if call.kind == "dense"]
    same = [output for call in dense if (output := _numbers(load(call.outputs[0]))).shape == left.shape][:3]
    if len(same) == 3:
        yield attention.FAMILY, dict(zip(("value", "key", "query"), same, strict=True))
    if near and near[0][1].shape == left.shape:
        yield sums.FAMILY, {"input": near[0][1], **_connections(earlier, left)}


def _connections(earlier: Sequence[Call], left: Array) -> dict[str, Array]:
    """Return what a residual connection may add: what earlier modules received or returned, by its name."""
    found = {}
    for call in earlier[:FAR]:
        for words_of, files in (("what '{}' receives", call.inputs), ("what '{}' returns", call.outputs)):
            if files and call is not earlier[0]:
                array = load(files[0])
                if array.shape == left.shape:
                    found[words_of.format(call.name)] = _numbers(array)
        if call is earlier[0] and call.inputs and (array := load(call.inputs[0])).shape == left.shape:
            found[f"what '{call.name}' receives"] = _numbers(array)
    return dict(list(found.items())[:MOST_CONNECTIONS])


def activation_between(one: Array, other: Array, rounding: float) -> str:
    """Return the activation that makes the first array the second, or the second the first; empty if none does."""
    for name, function in list(activations.FUNCTIONS.items())[1:]:
        for given, wanted in ((one, other), (other, one)):
            if distance(function(_numbers(given)), wanted) <= rounding:
                return name
    return ""


def _own(call: Call, tensors: Mapping[str, SideTensor]) -> dict[str, Array]:
    """Return the tensors of a module by role as float64; kernels as (outputs, inputs, places)."""
    found = {}
    for role, name in call.tensors.items():
        if name in tensors:
            word = words(role)[-1]
            array = np.asarray(tensors[name].values, np.float64)
            found[ROLES.get(word, word)] = _outputs_first(array) if role == "kernel" else array
    return found


def _outputs_first(kernel: Array) -> Array:
    """Return a kernel with outputs last and inputs before them as (outputs, inputs, places)."""
    return np.moveaxis(kernel, (-1, -2), (0, 1)) if kernel.ndim > 1 else kernel


def _first(families: Sequence[Family], place: Place, rounding: float) -> tuple[Cause | None, list[str]]:
    tried = []
    for family in families:
        tried.append(family.name)
        if (cause := explain(family, place, rounding)) is not None:
            return cause, tried
    return None, tried


def _numbers(array: Array) -> Array:
    return array.astype(np.float64)


def _distinct(names: Sequence[Any]) -> list[Any]:
    return list(dict.fromkeys(names))
