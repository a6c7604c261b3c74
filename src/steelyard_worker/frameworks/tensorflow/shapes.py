"""Extents of tensors whose shape is known when a function is traced, or only when it runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import tensorflow as tf

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


def extent(x: tf.Tensor, axis: int) -> int | tf.Tensor:
    """Return the extent of an axis: a number where the trace knows it, otherwise an int32 scalar."""
    known = x.shape[axis]
    return tf.shape(x)[axis] if known is None else known


def observed(compile_function: Callable[..., Any]) -> str:
    """Return the value of the knob `shapes` that the traces of a small function for three lengths show."""
    function = compile_function(lambda x: x + 1)
    if not hasattr(function, "experimental_get_tracing_count"):
        return "static"  # nothing is traced
    for length in (2, 3, 4):
        function(tf.zeros(length))
    return {3: "static", 2: "dynamic"}.get(function.experimental_get_tracing_count(), "unknown")
