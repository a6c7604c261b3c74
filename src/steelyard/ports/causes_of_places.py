"""Which families of hypotheses fit a place where two sides part, and what they need from the passes of both."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from steelyard.ports import layers_of_several
from steelyard.ports.alignment import distance, is_equal
from steelyard.ports.causes import Place, activations, attention, explain, norms, products, recurrent, sums, windows
from steelyard.ports.names import words
from steelyard.ports.passes import load

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from steelyard.ports.causes import Cause, Family
    from steelyard.ports.given_inputs import Array
    from steelyard.ports.passes import Call
    from steelyard.ports.side_tensors import SideTensor

OF_KINDS = norms.FAMILIES | products.FAMILIES | recurrent.FAMILIES
OF_KINDS |= {"convolution": (windows.CONVOLUTION,), "pooling": (windows.POOLING,), "attention": (attention.LAYER,)}
UNKNOWN = (*products.FAMILIES["dense"], attention.LAYER)
"""What is tried for a module of a class that nobody knows: its tensors show whether it may be one of these."""
OF_SEVERAL = {"lstm": layers_of_several.lstm, "attention": layers_of_several.attention, "": layers_of_several.attention}
NEAR, FAR = 4, 12
"""So many modules before a place may be the one whose output an activation got, or that a connection or attention began at."""
MOST_CONNECTIONS = 8
# Roles of tensors in the words of the families.
ROLES = {"scale": "weight"}
PARTS_OF_NAMES = {"query": ("query", "q"), "key": ("key", "k"), "value": ("value", "v")}


@dataclass(frozen=True)
class Before:
    """What lies before a module, in the layout of the left side.

    earlier: calls of modules that both sides have, the nearest first. between: what modules without tensors received and returned
    since, the nearest first. given: the inputs of the model by name.
    """

    earlier: Sequence[Call]
    between: Sequence[Array]
    given: Mapping[str, Array]


def in_module(
    one: Call, other: Call, values: tuple[Array, Array, Array], tensors: Mapping[str, SideTensor], rounding: float
) -> tuple[Cause | None, list[str]]:
    """Explain a pair of modules that return different values for the same input; also name the families that were tried.

    `values`: the input, and both outputs, in the layout of the left side; the outputs may be of different sizes.
    """
    kind = one.kind or other.kind
    families = OF_KINDS.get(kind, () if kind else UNKNOWN)
    given, left, right = values
    place = Place({"input": _numbers(given)}, _own(one, kind, tensors), left, right, one.settings, other.settings)
    return _first(families, place, rounding)


def before_module(
    before: Before, place: Call, values: tuple[Array, Array], rounding: float
) -> tuple[Cause | None, list[str]]:
    """Explain a module that receives different values, although all modules before it return the same.

    `values`: what it receives on both sides.
    """
    left, right = values
    tried: list[str] = []
    for family, inputs in _between(before, place, left):
        cause, names = _first((family,), Place(inputs, {}, left, right), rounding)
        tried += names
        if cause is not None:
            return cause, _distinct(tried)
    return None, _distinct(tried)


def _between(before: Before, place: Call, left: Array) -> Iterator[tuple[Family, dict[str, Array]]]:
    """Yield the families that fit what lies between two modules, with their inputs, the simplest first."""
    if place.kind == "embedding":
        yield products.NUMBERS, {"input": _numbers(left)}
        return
    near = [_numbers(load(call.outputs[0])) for call in before.earlier[:NEAR]]
    between = [_numbers(array) for array in before.between if not is_equal(array, left)]
    for output in (*between, *near):
        yield from _of_one(output, left)
    yield from _gates(before, left)
    masks = {f"{attention.MASK}'{name}'": array for name, array in before.given.items() if array.ndim == 2}
    for three in _projections(before.earlier[:FAR], left):
        yield attention.FAMILY, {**three, **masks}
    if near and near[0].shape == left.shape:
        yield sums.FAMILY, {"input": near[0], **_connections(before.earlier, left)}


def _of_one(output: Array, left: Array) -> Iterator[tuple[Family, dict[str, Array]]]:
    if output.shape == left.shape:
        yield activations.FAMILY, {"input": output}
    elif output.ndim == left.ndim > 2:
        yield windows.POOLING, {"input": output}
    if output.ndim > 2 and len(output) == len(left) and output.ndim > left.ndim:
        yield windows.EVERYWHERE, {"input": output}
        yield windows.FLAT, {"input": output}


def _gates(before: Before, left: Array) -> Iterator[tuple[Family, dict[str, Array]]]:
    """Yield a product of two layers, of which one has a function."""
    same = [call for call in before.earlier[:NEAR] if load(call.outputs[0]).shape == left.shape][:2]
    if len(same) == 2:
        yield activations.GATE, {f"'{call.name}'": _numbers(load(call.outputs[0])) for call in reversed(same)}


def _projections(earlier: Sequence[Call], left: Array) -> Iterator[dict[str, Array]]:
    """Yield what may be query, key and value: the outputs of three dense layers, or the thirds of one."""
    outputs = [(call, _numbers(load(call.outputs[0]))) for call in earlier if call.kind in ("dense", "")]
    width = left.shape[-1]
    fitting = [
        (call, array) for call, array in outputs if array.ndim == left.ndim == 3 and array.shape[1] == left.shape[1]
    ]
    three = [(call, array) for call, array in fitting if array.shape[-1] <= width][:3]
    if len(three) == 3:
        named = {role: array for call, array in three if (role := _role(call.name))}
        in_order = dict(zip(("value", "key", "query"), (array for _, array in three), strict=True))
        yield named if len(named) == 3 else in_order
    for _, array in fitting:
        if array.shape[-1] == 3 * width:
            yield dict(zip(("query", "key", "value"), np.split(array, 3, -1), strict=True))
            return


def _role(name: str) -> str:
    """Return whether the name of a module says that it makes queries, keys or values."""
    found = {word for part in name.replace("/", ".").split(".")[-2:] for word in part.lower().split("_")}
    return next((role for role, known in PARTS_OF_NAMES.items() if found & {*known}), "")


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


def with_own_activations(one: Call, other: Call, left: Array, right: Array) -> tuple[Array, Array]:
    """Return what two modules return, both with the activation that one applies itself and the other model later."""
    names = [activations.DECLARED.get(str(each.settings.get("activation", "")), "") for each in (one, other)]
    if names[1] and not names[0]:
        return activations.FUNCTIONS[names[1]](_numbers(left)), right
    if names[0] and not names[1]:
        return left, activations.FUNCTIONS[names[0]](_numbers(right))
    return left, right


def _own(call: Call, kind: str, tensors: Mapping[str, SideTensor]) -> dict[str, Array]:
    """Return the tensors of a module by role as float64; kernels as (outputs, inputs, places)."""
    if kind in OF_SEVERAL:
        named = layers_of_several.tensors_of(call, tensors)
        arrays = {role: np.asarray(tensors[name].values, np.float64) for role, name in named.items() if name in tensors}
        if found := OF_SEVERAL[kind](arrays):
            return found
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
