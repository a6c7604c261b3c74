"""What a module computes, and its constants, in words that all frameworks share: a table for each framework, read in one way."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    Known = Sequence[tuple[Any, str, Callable[[Any], dict[str, Any]]]]
    """Classes, a kind such as `layer_norm`, and what reads the settings from a module of one of these classes."""


def described(module: Any, known: Known) -> tuple[str, dict[str, Any]]:
    """Return the kind and the settings of a module; an empty kind if its class is not in the table."""
    for classes, kind, settings in known:
        if isinstance(module, classes):
            return kind, settings(module)
    return "", {}
