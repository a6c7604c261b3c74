"""The contents of a placed batch in any framework: its arrays as NumPy arrays, without the framework's types."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator

    Array = np.ndarray[Any, Any]

# Methods of the frameworks' arrays that wait until their values are there.
WAITING = ("block_until_ready", "wait_to_read")


def leaves(batch: Any) -> Iterator[Any]:
    """Yield the framework's own arrays in a batch: a dictionary, list or tuple of them, nested or not, in its order."""
    if isinstance(batch, dict):
        batch = tuple(batch.values())
    if not isinstance(batch, (list, tuple)):
        yield batch
        return
    for part in batch:
        yield from leaves(part)


def arrays(batch: Any) -> list[Array] | None:
    """Return the arrays of a placed batch in host memory; None where one of its parts cannot be read as an array."""
    try:
        found = [_array(leaf) for leaf in leaves(batch)]
    except Exception:  # types of frameworks that are no arrays may raise any error when they are read
        return None
    return found if all(array.dtype != object for array in found) else None


def _array(leaf: Any) -> Array:
    if hasattr(leaf, "asnumpy"):  # MindSpore, MXNet
        return np.asarray(leaf.asnumpy())
    # PyTorch: what lies on a device must be copied first. MXNet's arrays have `detach` alone, and TensorFlow's `cpu`.
    if hasattr(leaf, "detach") and hasattr(leaf, "cpu"):
        leaf = leaf.detach().cpu()
    return np.asarray(leaf.numpy() if hasattr(leaf, "numpy") else leaf)


def alike(one: list[Array], other: list[Array]) -> bool:
    """Return whether two batches have the same values in the same places; a value that is not a number equals itself."""
    return len(one) == len(other) and all(map(_equal, one, other))


def _equal(one: Array, other: Array) -> bool:
    floating = np.issubdtype(one.dtype, np.floating) and np.issubdtype(other.dtype, np.floating)
    return bool(np.array_equal(one, other, equal_nan=floating))


def wait(batch: Any) -> None:
    """Wait until a batch lies where it was placed, where the framework's arrays can be waited for one by one."""
    for leaf in leaves(batch):
        for name in WAITING:
            if hasattr(leaf, name):
                getattr(leaf, name)()
