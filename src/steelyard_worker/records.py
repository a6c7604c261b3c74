"""Read JSON that anyone may have written: dataclasses and typed dictionaries, checked against their annotations.

Only the standard library is used.
"""

from __future__ import annotations

import json
import math
import types
from dataclasses import MISSING, fields, is_dataclass
from functools import cache
from typing import TYPE_CHECKING, Annotated, Any, Union, get_args, get_origin, get_type_hints, is_typeddict

if TYPE_CHECKING:
    from pathlib import Path

# Whole numbers with the smallest value that they may have.
Count = Annotated[int, 0]
Positive = Annotated[int, 1]
# SQLite and NumPy hold no larger whole number.
LARGEST = 2**63 - 1
# Metadata of a field that older records do not have: it is left out where it has its default. So a record that does not use it,
# and every hash of it, is what it was before there was such a field.
LATER = {"later": True}


def to_line(record: Any) -> str:
    """Return a dataclass as one line of JSON."""
    return json.dumps(plain(record))


def plain(record: Any) -> Any:
    """Return a dataclass, and all inside it, as `asdict` does, but without the fields `LATER` that have their defaults."""
    if is_dataclass(record) and not isinstance(record, type):
        return {name: plain(value) for name, value in present(record).items()}
    if isinstance(record, dict):
        return {key: plain(value) for key, value in record.items()}
    if isinstance(record, (list, tuple)):
        found = [plain(value) for value in record]
        return found if isinstance(record, list) else tuple(found)
    return record


def present(record: Any) -> dict[str, Any]:
    """Return the fields of a dataclass by name, without those that are `LATER` and have their defaults."""
    kind: Any = type(record)
    found = {name: getattr(record, name) for name in _names(kind)}
    for name, default in _later(kind).items():
        if found[name] == default:
            del found[name]
    return found


@cache
def _names(kind: Any) -> tuple[str, ...]:
    return tuple(field.name for field in fields(kind))


@cache
def _later(kind: Any) -> dict[str, Any]:
    return {field.name: field.default for field in fields(kind) if field.metadata.get("later")}


def read_text(path: Path, errors: str = "strict") -> str:
    """Return the text of a UTF-8 file. OSError: it cannot be read; ValueError: it is a pipe or device, or not UTF-8."""
    if path.exists() and not path.is_file() and not path.is_dir():
        message = f"{path.name} is not a regular file"  # reading it might never end
        raise ValueError(message)
    return path.read_text(encoding="utf-8", errors=errors)


def parse(text: str) -> Any:
    """Return the value of a JSON text. ValueError: it is malformed, nested too deeply, or no text that UTF-8 can hold."""
    try:
        value = json.loads(text)
    except RecursionError:
        message = "it is nested too deeply"
        raise ValueError(message) from None
    if "\\ud" in text.lower():  # half of a surrogate pair cannot be printed
        json.dumps(value, ensure_ascii=False).encode()
    return value


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
    return kind(**{key: convert(hint, raw[key], f"{name}.{key}") for key, hint in known.items()})


@cache
def _hints(kind: Any) -> dict[str, Any]:
    return get_type_hints(kind, include_extras=True)


def convert(hint: Any, value: Any, where: str) -> Any:
    """Return parsed JSON as the type of an annotation; ValueError names what does not fit. `where` is its name."""
    origin, parts = get_origin(hint), get_args(hint)
    if hint is Any:
        return value
    if origin in (Union, types.UnionType):
        return None if value is None else convert(next(each for each in parts if each is not type(None)), value, where)
    if is_dataclass(hint):
        return build(hint, value, where)
    if is_typeddict(hint):
        return _typed(hint, value, where)
    if origin is tuple:
        return _items(parts, value, where)
    if origin is list:
        return list(_items((parts[0], ...), value, where))
    if origin is dict:
        return _table(parts[1], value, where)
    if origin is Annotated:
        return _bounded(parts[0], parts[1], value, where)
    return _plain(hint, value, where)


def _typed(kind: Any, value: Any, where: str) -> dict[str, Any]:
    """Check the keys that a typed dictionary declares; others are kept as they are."""
    found = _table(Any, value, where)
    for key in sorted(kind.__required_keys__ - found.keys()):
        message = f"{where} lacks the field '{key}'"
        raise ValueError(message)
    hints = {key: hint for key, hint in _hints(kind).items() if key in found}
    return found | {key: convert(hint, found[key], f"{where}.{key}") for key, hint in hints.items()}


def _bounded(kind: Any, least: int, value: Any, where: str) -> Any:
    found = _plain(kind, value, where)
    if found < least:
        raise _wrong(where, f"at least {least}", value)
    return found


def _items(parts: tuple[Any, ...], value: Any, where: str) -> tuple[Any, ...]:
    if not isinstance(value, (list, tuple)):
        raise _wrong(where, "a list", value)
    kinds = [parts[0]] * len(value) if parts[-1] is Ellipsis else list(parts)
    if len(kinds) != len(value):
        raise _wrong(where, f"a list of {len(kinds)}", value)
    return tuple(convert(kind, each, f"{where}[{place}]") for place, (kind, each) in enumerate(zip(kinds, value)))  # noqa: B905


def _table(kind: Any, value: Any, where: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise _wrong(where, "an object", value)
    return {key: convert(kind, each, f"{where}.{key}") for key, each in value.items()}


def _plain(kind: Any, value: Any, where: str) -> Any:
    if isinstance(value, int) and abs(value) > LARGEST:
        raise _wrong(where, f"at most {LARGEST}", value)
    if isinstance(value, float) and not math.isfinite(value):
        raise _wrong(where, "a finite number", value)
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        raise _wrong(
            where, {str: "a string", int: "a whole number", float: "a number", bool: "true or false"}[kind], value
        )
    return value


def _wrong(where: str, expected: str, value: Any) -> ValueError:
    return ValueError(f"{where} must be {expected}, but it is {str(value)[:80]!r}")
