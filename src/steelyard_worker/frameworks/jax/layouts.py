"""Canonical arrays <-> JAX's own layouts: images NHWC, kernels HWIO, matrices (in, out)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from steelyard_worker.tensors import transposed

if TYPE_CHECKING:
    from steelyard_worker.frameworks.base import Array

# Axes of the canonical array in JAX's order; other kinds have the same order.
NATIVE_AXES = {"conv": (2, 3, 1, 0), "conv1d": (2, 1, 0), "dense": (1, 0), "lstm_w_ih": (1, 0), "lstm_w_hh": (1, 0)}
IMAGE_AXES = (0, 2, 3, 1)


def to_native(kind: str, array: Array, dtype: str) -> Array:
    """Return a contiguous copy of a canonical tensor in JAX's layout and the precision of the run."""
    axes = NATIVE_AXES.get(kind)
    if axes == (1, 0):
        return transposed(array, dtype)
    return np.array(array if axes is None else np.transpose(array, axes), dtype, order="C")


def to_canonical(kind: str, array: Array) -> Array:
    """Return a native tensor in canonical layout as a contiguous copy that does not share memory with JAX."""
    axes = NATIVE_AXES.get(kind)
    return np.array(array if axes is None else np.transpose(array, np.argsort(axes)), order="C")


def input_to_native(array: Array, dtype: str) -> Array:
    """Return a canonical input in JAX's layout: images NHWC, floats in the precision of the run, integers int32."""
    if array.ndim == len(IMAGE_AXES):
        array = array.transpose(IMAGE_AXES)
    return np.ascontiguousarray(array, dtype if np.issubdtype(array.dtype, np.floating) else np.int32)
