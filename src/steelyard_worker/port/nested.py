"""Tensors inside what users pass and return: tuples, lists, dictionaries, dataclasses."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


def named(value: Any, is_tensor: Callable[[Any], bool], name: str = "") -> Iterator[tuple[str, Any]]:
    """Yield every tensor in a value with the keys and positions that lead to it, joined by dots, such as `hidden.0`."""
    if is_tensor(value):
        yield name or "output", value
        return
    for key, part in _parts(value):
        yield from named(part, is_tensor, f"{name}.{key}" if name else str(key))


def replaced(value: Any, is_tensor: Callable[[Any], bool], new: Iterator[Any]) -> Any:
    """Return the value with its tensors replaced in order; the containers are of the same types."""
    if is_tensor(value):
        return next(new)
    if isinstance(value, Mapping):
        filled = {key: replaced(part, is_tensor, new) for key, part in value.items()}
        return filled if type(value) is dict else type(value)(**filled)
    if isinstance(value, (list, tuple)):
        parts = [replaced(part, is_tensor, new) for part in value]
        return type(value)(*parts) if hasattr(value, "_fields") else type(value)(parts)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        changed = {key: replaced(part, is_tensor, new) for key, part in _parts(value)}
        return dataclasses.replace(value, **changed)
    return value


def _parts(value: Any) -> Iterator[tuple[Any, Any]]:
    if isinstance(value, Mapping):
        yield from value.items()
    elif isinstance(value, (list, tuple)):
        fields = getattr(value, "_fields", None)
        yield from zip(fields, value, strict=True) if fields else enumerate(value)
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        yield from ((each.name, getattr(value, each.name)) for each in dataclasses.fields(value))
