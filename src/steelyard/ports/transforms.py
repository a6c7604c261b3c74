"""How a tensor of one side becomes that of the other: reshapes, a permutation of axes, blocks in another order."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
BLOCKS = (4, 3, 2)
"""Numbers of blocks that frameworks order differently: the gates of an LSTM and of a GRU, and two halves."""


@dataclass(frozen=True)
class Transform:
    """right = blocks(left.reshape(first).transpose(axes).reshape(last)). Empty: nothing to do.

    blocks: the order of equal blocks along axis `along` of the result: block i is block `blocks[i]` of the left side.
    """

    first: tuple[int, ...] = ()
    axes: tuple[int, ...] = ()
    last: tuple[int, ...] = ()
    along: int = 0
    blocks: tuple[int, ...] = ()

    def apply(self, left: Array) -> Array:
        """Return the array of the right side."""
        found = left.reshape(self.first) if self.first else left
        found = found.transpose(self.axes) if self.axes else found
        found = found.reshape(self.last) if self.last else found
        return _reordered(found, self.along, self.blocks) if self.blocks else found

    def reverse(self, right: Array, shape: tuple[int, ...]) -> Array:
        """Return the array of the left side, whose shape is known."""
        if self.blocks:
            right = _reordered(right, self.along, tuple(int(each) for each in np.argsort(self.blocks)))
        first = self.first or shape
        axes = self.axes or tuple(range(len(first)))
        moved = tuple(first[axis] for axis in axes)
        return right.reshape(moved).transpose(tuple(int(each) for each in np.argsort(axes))).reshape(shape)

    @property
    def words(self) -> str:
        """The transform in a few words, such as `transposed`; empty where the tensors are equal as they are."""
        parts = []
        if self.first:
            parts.append(f"reshaped to {_shape(self.first)}")
        if self.axes:
            parts.append("transposed" if self.axes == (1, 0) else f"axes {', '.join(map(str, self.axes))}")
        if self.last:
            parts.append(f"reshaped to {_shape(self.last)}")
        if self.blocks:
            parts.append(f"blocks in the order {', '.join(map(str, self.blocks))}")
        return ", ".join(parts)


AS_IT_IS = Transform()


def candidates(left: tuple[int, ...], right: tuple[int, ...]) -> list[Transform]:
    """Return all permutations of axes, with a reshape before or after, from one shape to the other; the plainest first."""
    if math.prod(left) != math.prod(right):
        return []
    found = [AS_IT_IS] if left == right else []
    for axes in itertools.permutations(range(len(left))):
        moved = tuple(left[axis] for axis in axes)
        permuted = () if axes == tuple(range(len(left))) else axes
        if moved == right and permuted:
            found.append(Transform(axes=permuted))
        elif moved != right:
            found.append(Transform(axes=permuted, last=right))
    for axes in itertools.permutations(range(len(right))):
        first = [0] * len(right)
        for place, axis in enumerate(axes):
            first[axis] = right[place]
        if tuple(first) != left and axes != tuple(range(len(right))):
            found.append(Transform(first=tuple(first), axes=axes))
    found.sort(key=lambda each: (bool(each.first) + bool(each.last), bool(each.axes)))
    return _distinct(found)


def usual(left: tuple[int, ...], right: tuple[int, ...], kernel_is_left: bool) -> Transform | None:
    """Return how a kernel and a weight of a dense layer or a convolution belong together, if they have such shapes.

    A kernel has its outputs last and its inputs before them (Keras, Flax); a weight has outputs, inputs, then places (PyTorch).
    """
    places = len(left) - 2
    axes = (places + 1, places, *range(places)) if kernel_is_left else (*range(2, places + 2), 1, 0)
    return Transform(axes=axes) if places >= 0 and tuple(left[axis] for axis in axes) == right else None


def find(left: Array, right: Array) -> Transform | None:
    """Return the plainest transform with which the values are equal; None if there is none."""
    possible = candidates(left.shape, right.shape)
    for each in possible:
        if np.array_equal(each.apply(left), right):
            return each
    for each in _flattened(left.shape, right.shape):
        if np.array_equal(each.apply(left), right):
            return each
    for each in possible:
        if (ordered := _with_blocks(each, each.apply(left), right)) is not None:
            return ordered
    return None


def _flattened(left: tuple[int, ...], right: tuple[int, ...]) -> list[Transform]:
    """Return the transforms of a dense layer on flattened pictures, with channels first on one side and last on the other."""
    if len(left) != 2 or len(right) != 2:
        return []
    found = []
    for axis, other in itertools.product(range(2), range(2)):
        if left[axis] != right[other]:
            continue
        for side in range(2, math.isqrt(left[axis]) + 1):
            channels, rest = divmod(left[axis], side * side)
            if rest or channels == 1:
                continue
            for split, order in (((channels, side, side), (1, 2, 0)), ((side, side, channels), (2, 0, 1))):
                first = (*left[:axis], *split, *left[axis + 1 :])
                flat = tuple(axis + place for place in order)
                kept = 3 if axis == 0 else 0
                axes = (*flat, kept) if other == 0 else (kept, *flat)
                found.append(Transform(first=first, axes=axes, last=right))
    return found


def _with_blocks(transform: Transform, moved: Array, right: Array) -> Transform | None:
    for axis, count in itertools.product(range(right.ndim), BLOCKS):
        if right.shape[axis] % count or right.shape[axis] == count:
            continue
        ones, others = np.split(moved, count, axis), np.split(right, count, axis)
        order = [next((n for n, one in enumerate(ones) if np.array_equal(one, other)), None) for other in others]
        if None not in order and len(set(order)) == count:
            return Transform(
                transform.first, transform.axes, transform.last, axis, tuple(n for n in order if n is not None)
            )
    return None


def _reordered(array: Array, along: int, order: tuple[int, ...]) -> Array:
    blocks = np.split(array, len(order), along)
    return np.concatenate([blocks[number] for number in order], along)


def _distinct(transforms: list[Transform]) -> list[Transform]:
    return list(dict.fromkeys(transforms))


def _shape(shape: tuple[int, ...]) -> str:
    return "x".join(map(str, shape))
