"""A hash of the values of a tensor that does not depend on their order, so that equal contents are found in any layout."""

from __future__ import annotations

from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
BLOCK = 1 << 20
Digest = tuple[int, int, int]
"""The number of values, and two sums over their mixed bits."""


def digest(array: Array) -> Digest:
    """Return the digest of an array's values as float32; -0.0 counts as 0.0. Equal values in any order have equal digests.

    Two different multisets of values have the same digest with a probability of about 2^-64 (sums modulo 2^64 of mixed bits;
    the mixing is that of MurmurHash3's finaliser, with two keys).
    """
    flat = array.reshape(-1)
    first = second = 0
    for begin in range(0, flat.size, BLOCK):
        bits = (flat[begin : begin + BLOCK].astype(np.float32) + np.float32(0)).view(np.uint32).astype(np.uint64)
        first += int(_mixed(bits, 0x9E3779B97F4A7C15).sum(dtype=np.uint64))
        second += int(_mixed(bits, 0xD1B54A32D192ED03).sum(dtype=np.uint64))
    return flat.size, first % 2**64, second % 2**64


def is_constant(array: Array) -> bool:
    """Return whether all values are equal, so that they do not tell which tensor it is."""
    flat = array.reshape(-1)
    return flat.size < 2 or bool((flat == flat[0]).all())


def _mixed(bits: Array, key: int) -> Array:
    """Mix 64-bit numbers, wrapping around."""
    with np.errstate(over="ignore"):
        found = bits + np.uint64(key)
        found ^= found >> np.uint64(33)
        found *= np.uint64(0xFF51AFD7ED558CCD)
        found ^= found >> np.uint64(33)
        found *= np.uint64(0xC4CEB9FE1A85EC53)
        found ^= found >> np.uint64(33)
    return found
