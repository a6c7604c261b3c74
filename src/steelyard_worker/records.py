"""Convert frozen dataclasses to JSON and back, checked against their annotations. Standard library only."""

from __future__ import annotations

import json
import types
from dataclasses import MISSING, asdict, fields, is_dataclass
from functools import cache
from typing import Any, Union, get_args, get_origin, get_type_hints


def to_line(record: Any) -> str:
    """Return a dataclass as one line of JSON."""
    return json.dumps(asdict(record))


def build(kind: Any, raw: Any, where: str = "") -> Any:
    """Build a dataclass from parsed JSON; lists become tuples where the annotation is a tuple.

    Unknown keys are ignored, so that newer records can be read. ValueError names a field that is missing or has the
    wrong type.
    """
    name = where or kind.__name__
    if not isinstance(raw, dict):
        raise _wrong(name, "an object", raw)
    hints = _hints(kind)
    for field in fields(kind):
        if field.name not in raw and field.default is MISSING and field.default_factory is MISSING:
            message = f"{name} lacks the field '{field.name}'"
            raise ValueError(message)
    known = {field.name: hints[field.name] for field in fields(kind) if field.name in raw}
    return kind(**{key: _convert(hint, raw[key], f"{name}.{key}") for key, hint in known.items()})


@cache
def _hints(kind: Any) -> dict[str, Any]:
    return get_type_hints(kind)


def _convert(hint: Any, value: Any, where: str) -> Any:
    origin, parts = get_origin(hint), get_args(hint)
    if hint is Any:
        return value
    if origin in (Union, types.UnionType):
        return None if value is None else _convert(next(each for each in parts if each is not type(None)), value, where)
    if is_dataclass(hint):
        return build(hint, value, where)
    if origin is tuple:
        return _items(parts, value, where)
    if origin is dict:
        return _table(parts[1], value, where)
    return _plain(hint, value, where)


def _items(parts: tuple[Any, ...], value: Any, where: str) -> tuple[Any, ...]:
    if not isinstance(value, (list, tuple)):
        raise _wrong(where, "a list", value)
    kinds = [parts[0]] * len(value) if parts[-1] is Ellipsis else list(parts)
    if len(kinds) != len(value):
        raise _wrong(where, f"a list of {len(kinds)}", value)
    return tuple(_convert(kind, each, f"{where}[{place}]") for place, (kind, each) in enumerate(zip(kinds, value)))  # noqa: B905


def _table(kind: Any, value: Any, where: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise _wrong(where, "an object", value)
    return {key: _convert(kind, each, f"{where}.{key}") for key, each in value.items()}


def _plain(kind: Any, value: Any, where: str) -> Any:
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        raise _wrong(
            where, {str: "a string", int: "a whole number", float: "a number", bool: "true or false"}[kind], value
        )
    return value


def _wrong(where: str, expected: str, value: Any) -> ValueError:
    return ValueError(f"{where} must be {expected}, but it is {str(value)[:80]!r}")
