"""How far the tensors of two runs of one computation are apart."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping

    Array = np.ndarray[Any, Any]
    Tensors = Mapping[str, Array]


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
