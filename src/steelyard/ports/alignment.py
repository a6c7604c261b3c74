"""How far two tensors are apart, where one may have its axes in another order."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import numpy as np

from steelyard.ports.transforms import AS_IT_IS, Transform, candidates

if TYPE_CHECKING:
    from steelyard.ports.given_inputs import Array

FAR = float("inf")
MOST_PADDING = 12
"""So many zeros along an axis may be around an array that is padded."""


def distance(one: Array, other: Array) -> float:
    """Return the relative distance of two arrays of equal shape: the norm of their difference over the larger norm.

    Infinite where one has a number and the other has none.
    """
    first, second = one.astype(np.float64), other.astype(np.float64)
    whole = np.isfinite(first) & np.isfinite(second)
    if not whole.all():
        same = (first == second) | (np.isnan(first) & np.isnan(second)) | whole
        if not same.all():
            return FAR
        first, second = np.where(whole, first, 0), np.where(whole, second, 0)
    scale = max(float(np.linalg.norm(first)), float(np.linalg.norm(second)))
    return float(np.linalg.norm(first - second)) / scale if scale else 0.0


def is_equal(one: Array, other: Array) -> bool:
    """Return whether two arrays have the same shape and values."""
    return one.shape == other.shape and bool((one == other).all())


def nearest(left: Array, right: Array, enough: float = 0.0) -> tuple[float, Transform] | None:
    """Return the least distance over all layouts, and the transform of the right array to the left one; None if none fits.

    The first layout with a distance of at most `enough` is taken: the plainest come first.
    """
    best: tuple[float, Transform] | None = None
    if left.ndim > 5 or right.ndim > 5:
        return (distance(left, right), AS_IT_IS) if left.shape == right.shape else None
    for transform in candidates(right.shape, left.shape):
        if transform.first and transform.last:
            continue
        found = distance(left, transform.apply(right))
        if best is None or found < best[0]:
            best = found, transform
        if found <= enough:
            break
    return best


def same_batch(left: Array, right: Array) -> tuple[Array, Array]:
    """Return both arrays, one of them repeated where it is the same for all samples of a batch, as positions are."""
    if 1 < left.ndim == right.ndim and left.shape[1:] == right.shape[1:] and 1 in (len(left), len(right)):
        shape = (max(len(left), len(right)), *left.shape[1:])
        return np.broadcast_to(left, shape), np.broadcast_to(right, shape)
    return left, right


def padded(left: Array, right: Array, rounding: float) -> Transform | None:
    """Return the axes in which one array is the other with zeros around it; None if it is not.

    A convolution may pad what it receives, or get it padded already.
    """
    if not 3 <= left.ndim == right.ndim <= 5 or abs(_norm(left) - _norm(right)) > rounding * _norm(left):
        return None
    for axes in itertools.permutations(range(right.ndim)):
        moved = right.transpose(axes)
        small, large = (left, moved) if left.size < moved.size else (moved, left)
        rest = [more - less for more, less in zip(large.shape, small.shape, strict=True)]
        if min(rest) < 0 or max(rest) > MOST_PADDING:
            continue
        for begin in itertools.product(*(range(each + 1) for each in rest)):
            inside = tuple(slice(one, one + size) for one, size in zip(begin, small.shape, strict=True))
            if distance(large[inside], small) <= rounding:
                return Transform(axes=() if axes == tuple(range(right.ndim)) else axes)
    return None


def _norm(array: Array) -> float:
    return float(np.linalg.norm(array.astype(np.float64)))
