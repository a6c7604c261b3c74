"""Arrays of JAX, also those that a function under `jax.vmap` sees: all samples are saved, and all are replaced."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np
from jax._src.interpreters.batching import BatchTracer

from steelyard_worker.port.errors import SideError
from steelyard_worker.port.observed import Bridge

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


def is_array(value: Any) -> bool:
    """Return whether a value is an array of numbers, and not a key of a random generator."""
    return isinstance(value, (np.ndarray, np.generic)) or (
        isinstance(value, jax.Array) and not jnp.issubdtype(value.dtype, jax.dtypes.prng_key)
    )


def is_floating(value: Any) -> bool:
    """Return whether a value is an array of real numbers."""
    return is_array(value) and bool(jnp.issubdtype(value.dtype, jnp.floating))


def to_array(tensor: Any) -> np.ndarray:
    """Return the values; under `jax.vmap`, which adds an axis, those of all samples, with this axis first."""
    if isinstance(tensor, BatchTracer):
        values = to_array(tensor.val)
        outer = values.ndim - np.ndim(tensor.val)  # axes of further vmaps around this one
        return np.moveaxis(values, outer + tensor.batch_dim, 0) if tensor.batch_dim is not None else values
    found = np.asarray(tensor)
    return found if found.dtype.kind in "fiub" else found.astype(np.float32)


def like(array: np.ndarray, example: Any) -> Any:
    """Return values as an array like the example, under `jax.vmap` too."""
    if isinstance(example, BatchTracer):
        if example.batch_dim is None:
            return like(array, example.val)
        outer = array.ndim - np.ndim(example.val)
        inner = like(np.moveaxis(array, 0, outer + example.batch_dim), example.val)
        return BatchTracer(example._trace, inner, example.batch_dim)
    return jnp.asarray(array, dtype=example.dtype)


def doubled(value: Any) -> Any:
    """Return real numbers as float64, anything else as it is."""
    return jnp.asarray(value, jnp.float64) if is_floating(value) else value


def check_values(named: Iterable[tuple[str, Any]]) -> None:
    """Refuse arrays that have a shape alone, as `jax.eval_shape` makes them. SideError: one of them is such an array."""
    for name, leaf in named:
        if isinstance(leaf, jax.ShapeDtypeStruct):
            raise SideError(f"'{name}' of the model has a shape, but no values. Let model() load a checkpoint into it.")


def eagerly(observer: object) -> contextlib.AbstractContextManager[Any]:
    """Let nothing be compiled where an observer must see the values; without one, loops stay loops."""
    return contextlib.nullcontext() if observer is None else jax.disable_jit()


def placed(arrays: Mapping[str, np.ndarray], leaves: Iterable[Any]) -> dict[str, Any]:
    """Return arrays of JAX; floats in the dtype of the first of the leaves that has one."""
    dtype = next((leaf.dtype for leaf in leaves if is_floating(leaf)), jnp.float32)
    return {name: jnp.asarray(array, dtype if array.dtype.kind == "f" else None) for name, array in arrays.items()}


BRIDGE = Bridge(is_array, to_array, like)
