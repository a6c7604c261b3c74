"""Which families of hypotheses fit a place where two sides part, and what they need from the passes of both."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from steelyard.port.alignment import distance
from steelyard.port.causes import Place, activations, attention, explain, norms, products
from steelyard.port.names import words
from steelyard.port.passes import load

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from steelyard.port.causes import Cause, Family
    from steelyard.port.given_inputs import Array
    from steelyard.port.passes import Call
    from steelyard.port.side_tensors import SideTensor

OF_KINDS = norms.FAMILIES | products.FAMILIES
NEAR = 4
"""So many pairs before a place may be the one whose output an activation got."""
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
    earlier: Sequence[tuple[Call, Path]], left: Array, right: Array, rounding: float
) -> tuple[Cause | None, list[str]]:
    """Explain a module that receives different values, although all modules before it return the same.

    `earlier`: calls of the left side with the file of their output, the nearest first. `left`, `right`: what it receives.
    """
    tried: list[str] = []
    for _, path in earlier[:NEAR]:
        output = load(path)
        if output.shape != left.shape:
            continue
        place = Place({"input": _numbers(output)}, {}, left, right)
        cause, names = _first((activations.FAMILY,), place, rounding)
        tried += names
        if cause is not None:
            return cause, _distinct(tried)
    same = [path for call, path in earlier if call.kind == "dense" and load(path).shape == left.shape][:3]
    if len(same) == 3:
        value, key, query = (_numbers(load(path)) for path in same)
        place = Place({"query": query, "key": key, "value": value}, {}, left, right)
        cause, names = _first((attention.FAMILY,), place, rounding)
        return cause, _distinct([*tried, *names])
    return None, _distinct(tried)


def activation_between(one: Array, other: Array, rounding: float) -> str:
    """Return the activation that makes the first array the second, or the second the first; empty if none does."""
    for name, function in list(activations.FUNCTIONS.items())[1:]:
        for given, wanted in ((one, other), (other, one)):
            if distance(function(_numbers(given)), wanted) <= rounding:
                return name
    return ""


def _own(call: Call, tensors: Mapping[str, SideTensor]) -> dict[str, Array]:
    """Return the tensors of a module by role as float64; a dense kernel as (out, in)."""
    found = {}
    for role, name in call.tensors.items():
        if name in tensors:
            word = words(role)[-1]
            array = np.asarray(tensors[name].values, np.float64)
            found[ROLES.get(word, word)] = array.T if role == "kernel" and array.ndim == 2 else array
    return found


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
