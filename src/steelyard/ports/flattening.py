"""Dense layers on flattened pictures: models with channels second and with channels last order their inputs differently."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from steelyard.ports.transforms import Transform

if TYPE_CHECKING:
    from steelyard.ports.mapping import Mapping


def of_kernels(mapping: Mapping, names: set[str]) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
    """Return, for kernels of the left side that are mapped so, how the left side's numbers are split, and the order of the right side.

    Such as ((512, 2, 2), (1, 2, 0)): channels, height and width become height, width and channels.
    """
    found = []
    for pair in mapping.pairs:
        first, axes = pair.transform.first, pair.transform.axes
        if not names.isdisjoint(pair.left) and len(first) == 4 and len(axes) == 4:
            kept = 0 if 0 in (axes[0], axes[-1]) else 3
            begin = 1 if kept == 0 else 0
            found.append((first[begin : begin + 3], tuple(axis - begin for axis in axes if axis != kept)))
    return found


def to_left(shape: tuple[int, ...], split: tuple[int, ...], order: tuple[int, ...]) -> Transform | None:
    """Return the transform of flattened pictures of the right side to those of the left side."""
    if len(shape) != 2 or shape[1] != math.prod(split):
        return None
    moved = tuple(split[axis] for axis in order)
    back = tuple(order.index(axis) + 1 for axis in range(3))
    return Transform(first=(shape[0], *moved), axes=(0, *back), last=shape)
