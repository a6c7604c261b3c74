"""How far two tensors are apart, where one may have its axes in another order."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from steelyard.port.transforms import AS_IT_IS, Transform, candidates

if TYPE_CHECKING:
    from steelyard.port.given_inputs import Array

FAR = float("inf")


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


def nearest(left: Array, right: Array) -> tuple[float, Transform] | None:
    """Return the least distance over all layouts, and the transform of the right array to the left one; None if none fits."""
    best: tuple[float, Transform] | None = None
    if left.ndim > 5 or right.ndim > 5:
        return (distance(left, right), AS_IT_IS) if left.shape == right.shape else None
    for transform in candidates(right.shape, left.shape):
        if transform.first and transform.last:
            continue
        found = distance(left, transform.apply(right))
        if best is None or found < best[0]:
            best = found, transform
        if found == 0:
            break
    return best
