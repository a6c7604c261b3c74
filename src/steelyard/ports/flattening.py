"""Dense layers on flattened pictures: models with channels second and with channels last order their inputs differently."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from steelyard.ports.transforms import Transform

if TYPE_CHECKING:
    from steelyard.ports.mapping import Mapping


def of_kernels(mapping: Mapping, names: set[str]) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
    """Return, for these kernels of the left side, how its numbers are split, and in which order the right side has them.

    Such as ((512, 2, 2), (1, 2, 0)): channels, height and width become height, width and channels.
    """
    found = []
    for pair in mapping.pairs:
        if not names.isdisjoint(pair.left) and (kept := _outputs(pair.transform)) is not None:
            begin, axes = 1 - kept // 3, pair.transform.axes
            found.append(
                (pair.transform.first[begin : begin + 3], tuple(axis - begin for axis in axes if axis != kept))
            )
    return found


def _outputs(transform: Transform) -> int | None:
    """Return the axis, 0 or 3, of the outputs of a kernel whose inputs are split into three; None if it is not such a one."""
    first, axes, last = transform.first, transform.axes, transform.last
    if len(first) != 4 or len(axes) != 4 or len(last) != 2:
        return None
    ends = ((axes[0], last[0]), (axes[-1], last[-1]))
    return next((axis for axis, size in ends if axis in (0, 3) and first[axis] == size), None)


def to_left(shape: tuple[int, ...], split: tuple[int, ...], order: tuple[int, ...]) -> Transform | None:
    """Return the transform of flattened pictures of the right side to those of the left side."""
    if len(shape) != 2 or shape[1] != math.prod(split):
        return None
    moved = tuple(split[axis] for axis in order)
    back = tuple(order.index(axis) + 1 for axis in range(3))
    return Transform(first=(shape[0], *moved), axes=(0, *back), last=shape)
