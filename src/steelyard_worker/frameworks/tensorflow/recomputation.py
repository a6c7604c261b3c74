"""The knob `recomputation`: blocks of a network that keep only their inputs, and are computed again in the backward pass."""

from __future__ import annotations

from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

import tensorflow as tf

if TYPE_CHECKING:
    from collections.abc import Callable

_second: ContextVar[bool] = ContextVar("second", default=False)


def is_second_pass() -> bool:
    """Return whether a block is computed again now: then running statistics have moved already (P-56)."""
    return _second.get()


class Recomputed:
    """A block under `tf.recompute_grad`. Its arguments are tensors, and values that it decides by, such as `training`."""

    def __init__(self, block: Callable[..., Any]) -> None:
        self._block = block

    def __call__(self, *arguments: Any) -> Any:
        tensors = [each for each in arguments if tf.is_tensor(each)]
        passes = 0

        def run(*given: tf.Tensor) -> Any:
            nonlocal passes
            passes += 1
            left = iter(given)
            token = _second.set(passes > 1)
            try:
                return self._block(*(next(left) if tf.is_tensor(each) else each for each in arguments))
            finally:
                _second.reset(token)

        return tf.nest.map_structure(_with_dense_gradient, tf.recompute_grad(run)(*tensors))


def _with_dense_gradient(x: tf.Tensor) -> tf.Tensor:
    """Return the tensor. Its gradient is no IndexedSlices, which `tf.recompute_grad` does not take; a reshape adds them up."""
    return tf.reshape(x, x.shape if x.shape.is_fully_defined() else tf.shape(x))
