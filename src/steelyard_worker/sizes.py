"""Rules for the sizes of a network, which a `network.py` checks before it describes anything."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping


class SizesError(ValueError):
    """Sizes of which no network can be made; the message says why, for the user, without a full stop."""


def require(holds: bool, why: str) -> None:
    """Raise SizesError with this reason unless the condition holds."""
    if not holds:
        raise SizesError(why)


def at_least(sizes: Mapping[str, Any], name: str, least: int) -> None:
    """Raise SizesError if a size is smaller than its least value."""
    require(sizes[name] >= least, f"{name} is {sizes[name]} and must be at least {least}")


def one_of(sizes: Mapping[str, Any], name: str, *known: str) -> None:
    """Raise SizesError if a size is none of these words."""
    require(sizes[name] in known, f"{name} is '{sizes[name]}' and must be one of {', '.join(known)}")
