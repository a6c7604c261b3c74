"""Canonical arrays <-> TensorFlow's own layouts (P-14, P-15, P-16, P-20): a permutation of axes, bit-exact."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from steelyard_worker.tensors import transposed

if TYPE_CHECKING:
    from steelyard_worker.frameworks.base import Array

# Axes of the canonical array in TensorFlow's order; other kinds have the same order.
AXES = {
    "image": (0, 2, 3, 1),  # NCHW -> NHWC
    "conv": (2, 3, 1, 0),  # OIHW -> HWIO
    "conv1d": (2, 1, 0),  # OIW -> WIO
    "dense": (1, 0),  # (out, in) -> (in, out)
    "lstm_w_ih": (1, 0),  # (4H, in) -> (in, 4H), gates i, f, g, o on both sides
    "lstm_w_hh": (1, 0),  # (4H, H) -> (H, 4H)
}


def native(kind: str, array: Array) -> Array:
    """Return the array in TensorFlow's layout, contiguous."""
    if AXES.get(kind) == (1, 0):
        return transposed(array)
    return np.ascontiguousarray(np.transpose(array, AXES[kind]) if kind in AXES else array)


def canonical_shape(kind: str, shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return the canonical shape of a tensor with this shape in TensorFlow's layout."""
    return tuple(shape[axis] for axis in np.argsort(AXES[kind])) if kind in AXES else tuple(shape)


def canonical(kind: str, array: Array) -> Array:
    """Undo `native`."""
    return np.ascontiguousarray(np.transpose(array, np.argsort(AXES[kind])) if kind in AXES else array)
