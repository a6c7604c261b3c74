"""The batches of both sides' own loaders: the same samples in the same order, with the same values?"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from steelyard.errors import UserError
from steelyard.ports import contents
from steelyard.ports.alignment import FAR, distance, nearest
from steelyard.results.port_record import Difference, Stage

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    from steelyard.ports.given_inputs import Array
    from steelyard.ports.side_process import SideProcess

NAME = "batches of the loaders"
BATCHES = 3
"""So many batches of each loader are compared."""
ROUNDING = 1e-6
"""Loaders compute in float32, such as when they divide by 255."""
DIGITS = 4
TRIED = ("order of samples", "order of channels", "flips", "scale", "scale and shift of each channel")


class _Column(NamedTuple):
    """One array of all batches of a side, joined along the samples, float64. `sizes`: samples of each batch."""

    name: str
    values: Array
    sizes: tuple[int, ...]


def stage(sides: tuple[SideProcess, SideProcess], can: tuple[Mapping[str, bool], Mapping[str, bool]]) -> Stage:
    """Compare the first batches of both loaders, array by array."""
    missing = [side.name for side, each in zip(sides, can, strict=True) if not each["batches"]]
    if missing:
        return Stage(NAME, f"{' and '.join(missing)} {'have' if len(missing) > 1 else 'has'} no batches()")
    try:
        left, right = (_columns(side) for side in sides)
    except UserError as error:
        return Stage(NAME, str(error), failed=True)
    if len(left) != len(right):
        names = [", ".join(each.name for each in columns) for columns in (left, right)]
        where = f"{sides[0].name} has {names[0] or 'none'}, {sides[1].name} has {names[1] or 'none'}"
        return Stage(NAME, f"the batches hold another number of arrays: {where}", failed=True)
    found = [
        difference
        for one, other in _paired(left, right)
        if (difference := _difference(one, other, (sides[0].name, sides[1].name))) is not None
    ]
    return Stage(NAME, "", len(left), tuple(found), f"{len(left[0].sizes) if left else 0} batches")


def _columns(side: SideProcess) -> list[_Column]:
    answer = side.ask("batches", folder=str(side.new_folder()), count=BATCHES)
    batches: list[dict[str, str]] = answer["batches"]
    if not batches:
        raise UserError(f"Side '{side.name}': batches() ended before the first batch. Let it yield batches.")
    found = []
    for name in batches[0]:
        arrays = [_loaded(batch[name]) for batch in batches if name in batch]
        if len({array.shape[1:] for array in arrays}) > 1:
            raise UserError(f"Side '{side.name}': the array '{name}' has other shapes from batch to batch.")
        found.append(_Column(name, np.concatenate(arrays), tuple(len(array) for array in arrays)))
    return found


def _loaded(path: str | Path) -> Array:
    found: Array = np.atleast_1d(np.load(path, allow_pickle=False)).astype(np.float64)
    return found


def _paired(left: list[_Column], right: list[_Column]) -> Iterator[tuple[_Column, _Column]]:
    """Pair the arrays by their names where both have the same, else in their order."""
    named = {each.name: each for each in right}
    if {each.name for each in left} == named.keys():
        yield from ((each, named[each.name]) for each in left)
    else:
        yield from zip(left, right, strict=True)


def _difference(one: _Column, other: _Column, names: tuple[str, str]) -> Difference | None:
    if one.sizes != other.sizes:
        said = f"{names[0]} has batches of {_sizes(one)}, {names[1]} of {_sizes(other)}"
        return Difference("loader", one.name, other.name, "", "", 0.0, FAR, said, ("sizes",))
    aligned = _same_layout(one.values, other.values)
    if aligned is None:
        shapes = ["x".join(map(str, each.values.shape[1:])) for each in (one, other)]
        said = f"a sample has the shape {shapes[0]} in {names[0]} and {shapes[1]} in {names[1]}"
        return Difference("loader", one.name, other.name, "", "", 0.0, FAR, said, ("shapes",))
    apart = distance(one.values, aligned)
    if apart <= ROUNDING:
        return None
    return Difference("loader", one.name, other.name, "", "", 0.0, apart, _cause(one.values, aligned, names), TRIED)


def _sizes(column: _Column) -> str:
    return ", ".join(map(str, column.sizes))


def _same_layout(left: Array, right: Array) -> Array | None:
    """Return the right samples in the layout of the left ones; None if they cannot be the same."""
    if left.shape == right.shape:
        compared = nearest(left, right)
        return right if compared is None or compared[0] > ROUNDING else compared[1].apply(right)
    moved = _channels_moved(left.shape, right)
    return moved if moved is not None and moved.shape == left.shape else None


def _channels_moved(shape: tuple[int, ...], right: Array) -> Array | None:
    """Return pictures with their channels where the shape has them."""
    if right.ndim != len(shape) or right.ndim < 3:
        return None
    for moved in (np.moveaxis(right, -1, 1), np.moveaxis(right, 1, -1)):
        if moved.shape == shape:
            return moved
    return None


def _cause(left: Array, right: Array, names: tuple[str, str]) -> str:
    """Return what makes the left samples the right ones; empty if nothing that is known does."""
    one, other = names
    for words, change in _changes(left):
        if distance(change(left), right) <= ROUNDING:
            return f"{other} has {words}"
    digests = [[contents.digest(np.ascontiguousarray(sample)) for sample in side] for side in (left, right)]
    orders = [sorted(range(len(side)), key=side.__getitem__) for side in digests]
    if distance(left[orders[0]], right[orders[1]]) <= ROUNDING:
        return f"{other} has the same samples in another order"
    if (factor := _scale(left, right)) is not None:
        return f"the values of {other} are {factor:.{DIGITS}g} times those of {one}"
    if (said := _affine(left, right)) is not None:
        return f"{other} has the values of {one} {said}"
    shared = len(set(digests[0]) & set(digests[1]))
    if shared:
        return f"{shared} of {len(left)} samples are in both, so the loaders shuffle or leave out others"
    return ""


def _changes(left: Array) -> Iterator[tuple[str, Callable[[Array], Array]]]:
    if left.ndim < 3:
        return
    for axis in range(1, left.ndim):
        yield _words_of_flip(left, axis), partial(np.flip, axis=axis)


def _words_of_flip(left: Array, axis: int) -> str:
    return "the channels in reverse order" if left.shape[axis] == 3 else f"axis {axis} in reverse order"


def _scale(left: Array, right: Array) -> float | None:
    norm = float((left * left).sum())
    factor = float((left * right).sum()) / norm if norm else 0.0
    return factor if factor and distance(factor * left, right) <= ROUNDING else None


def _affine(left: Array, right: Array) -> str | None:
    """Return the scale and shift of the whole array, or of each channel, that make the left one the right one."""
    axes = [None, *(axis for axis in range(1, left.ndim) if left.shape[axis] <= 4)]
    for axis in axes:
        ones = left.reshape(1, -1) if axis is None else np.moveaxis(left, axis, 0).reshape(left.shape[axis], -1)
        others = right.reshape(1, -1) if axis is None else np.moveaxis(right, axis, 0).reshape(right.shape[axis], -1)
        fits = [_line(x, y) for x, y in zip(ones, others, strict=True)]
        computed = np.stack([a * x + b for (a, b), x in zip(fits, ones, strict=True)])
        if distance(computed, others) <= ROUNDING:
            said = [f"times {a:.{DIGITS}g} plus {b:.{DIGITS}g}" for a, b in fits]
            return said[0] if axis is None else f"{', '.join(said)} in channels 0 to {len(said) - 1}"
    return None


def _line(x: Array, y: Array) -> tuple[float, float]:
    centred = x - x.mean()
    norm = float(centred @ centred)
    slope = float(centred @ (y - y.mean())) / norm if norm else 0.0
    return slope, float(y.mean() - slope * x.mean())
