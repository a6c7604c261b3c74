"""Inner tensors of a network, by the names that its `network.py` lists as `probes`.

They are collected in a process of their own, after a certificate was rejected, so that the first layer that differs can be named.
In every other process `probe` only tests one variable, and a compiled network does not contain it.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Iterator

    T = TypeVar("T")

_found: dict[str, Any] | None = None


def probe(name: str, x: T) -> T:
    """Return `x`, a framework's tensor, unchanged, and keep the first one of each name while tensors are collected.

    Not for bodies of loops that a framework compiles: their tensors do not exist outside of them.
    """
    if _found is not None:
        _found.setdefault(name, x)
    return x


def is_collecting() -> bool:
    """Return whether `probe` keeps tensors now."""
    return _found is not None


@contextmanager
def collected() -> Iterator[dict[str, Any]]:
    """Collect what `probe` is given, by name."""
    global _found  # a collector passed through every layer would be in the way of whoever writes a network
    _found = {}
    try:
        yield _found
    finally:
        _found = None
