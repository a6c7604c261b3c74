"""The knob `dropout`: whether the networks that are built have it. Its masks come from the framework's own generator."""

from __future__ import annotations

from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

ON, OFF = "on", "off"
# Every framework draws its masks from this seed, so that a process can be repeated; no two frameworks draw the same.
SEED = 1

_value: ContextVar[str] = ContextVar("dropout", default=OFF)


@contextmanager
def built_as(value: str) -> Iterator[None]:
    """Build every network within with dropout ("on") or without ("off")."""
    token = _value.set(value)
    try:
        yield
    finally:
        _value.reset(token)


def is_on() -> bool:
    """Return whether a network that is built now has dropout."""
    return _value.get() == ON
