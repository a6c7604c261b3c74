"""The distances between the tensors of two runs of one computation."""

from __future__ import annotations

import itertools
import math
import re
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping

    Array = np.ndarray[Any, Any]
    Tensors = Mapping[str, Array]

# A process computes the first steps of its certificate once more at its end. The changes of its tensors are compared after this
# step, at this many places of each, with this many digits.
CHANGED_AFTER = 2
CHANGE_ELEMENTS, CHANGE_DIGITS = 16, 7


def of_run(run: Tensors, reference: Tensors) -> dict[str, float]:
    """Return the L2 distance of every tensor of a run from that of the reference; of a state, that of its change."""
    return {key: l2_distance(change(run, key), change(reference, key)) for key in reference}


def change(run: Tensors, key: str) -> Array:
    """Return the tensor; for a state after some steps, its change since the start, float64."""
    start = start_of(key)
    return run[key] if start == key else np.subtract(run[key], run[start], dtype=np.float64)


def start_of(key: str) -> str:
    """Return the key of a state's tensor before the first step; other keys are returned unchanged."""
    return re.sub(r"after\d+/", "after0/", key, count=1)


def l2_norm(array: Array) -> float:
    """Return the L2 norm of all elements, computed in float64."""
    flat = np.asarray(array, np.float64).reshape(-1)
    return math.sqrt(float(np.dot(flat, flat)))


def l2_distance(left: Array, right: Array) -> float:
    """Return the L2 norm of the difference, computed in float64."""
    return l2_norm(np.subtract(left, right, dtype=np.float64))


def sampled(array: Array, most: int) -> Array:
    """Return the array, or `most` of its elements as a vector, in order, at places that depend only on its size.

    Multiples of a step near the golden section of the size are evenly spread (Knuth, The Art of Computer Programming 3, 6.4).
    """
    flat = np.asarray(array).reshape(-1)
    if not most or flat.size <= most:
        return np.array(array)
    step = next(each for each in itertools.count(round(flat.size * 0.618)) if math.gcd(each, flat.size) == 1)
    places = np.arange(most, dtype=np.int64) * step % flat.size
    return np.array(flat[np.sort(places)])


def some_elements(tensor: Array) -> Array:
    """Return the elements of a tensor whose changes are compared at the end of a process: float64 (up to CHANGE_ELEMENTS,)."""
    return sampled(tensor, CHANGE_ELEMENTS).reshape(-1).astype(np.float64)


def written(changes: Array) -> list[float]:
    """Return changes as they are written down: with CHANGE_DIGITS digits."""
    return [float(f"{value:.{CHANGE_DIGITS}g}") for value in changes]
