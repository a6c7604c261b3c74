"""Inner tensors of a network, by the names that its `network.py` lists as `probes`.

They are collected in a process of their own, after a certificate was rejected, so that the first layer that differs can be named.
In every other process `probe` only tests one variable, and a compiled network does not contain it.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    T = TypeVar("T")

_found: dict[str, Any] | None = None
# The first tensors of modules that return several. What an implementation passes to `probe` under the same name comes before.
_of_several: dict[str, Any] = {}


def probe(name: str, x: T) -> T:
    """Return `x`, a framework's tensor, unchanged, and keep the first one of each name while tensors are collected.

    Not for bodies of loops that a framework compiles: their tensors do not exist outside of them.
    """
    if _found is not None:
        _found.setdefault(name, x)
    return x


def probe_output(name: str, output: Any, kind: type[Any], copied: Callable[[Any], Any] = lambda x: x) -> None:
    """Keep the output of a module under the module's name: the first tensor of those that it returns, in tuples or by name.

    `kind`: of the framework's tensors. `copied`: what keeps a tensor from being changed in place by the next module.
    """
    if _found is None:
        return
    if isinstance(output, kind):
        _found.setdefault(name, copied(output))
    elif (first := _first(output, kind)) is not None:
        _of_several.setdefault(name, copied(first))


def _first(output: Any, kind: type[Any]) -> Any:
    if isinstance(output, kind):
        return output
    parts = output.values() if isinstance(output, dict) else output if isinstance(output, (tuple, list)) else ()
    return next((found for each in parts if (found := _first(each, kind)) is not None), None)


def is_collecting() -> bool:
    """Return whether `probe` keeps tensors now."""
    return _found is not None


@contextmanager
def collected() -> Iterator[dict[str, Any]]:
    """Collect what `probe` is given, by name."""
    global _found  # passing a collector through every layer would burden the author of a network
    found: dict[str, Any] = {}
    _found = found
    _of_several.clear()
    try:
        yield found
    finally:
        for name, x in _of_several.items():
            found.setdefault(name, x)
        _found = None
