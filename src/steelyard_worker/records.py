"""Read JSON that anyone may have written: dataclasses and typed dictionaries, checked against their annotations.

Only the standard library is used.
"""

from __future__ import annotations

import json
import math
import types
from dataclasses import MISSING, fields, is_dataclass
from functools import cache, partial
from typing import TYPE_CHECKING, Annotated, Any, Union, get_args, get_origin, get_type_hints, is_typeddict

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
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
    return convert(kind, raw, where or kind.__name__)


def convert(hint: Any, value: Any, where: str) -> Any:
    """Return parsed JSON as the type of an annotation; ValueError names what does not fit. `where` is its name."""
    try:
        return _converter(hint)(value)
    except _Unfit as error:
        raise ValueError(error.sentence(where)) from None


class _Unfit(Exception):
    """A value that does not fit. `steps`: the names that lead to it, the innermost first; `what` follows its name."""

    def __init__(self, what: str) -> None:
        super().__init__(what)
        self.what, self.steps = what, list[str]()

    def inside(self, step: str) -> _Unfit:
        """Note one more name on the way to the value."""
        self.steps.append(step)
        return self

    def sentence(self, where: str) -> str:
        return f"{where}{''.join(reversed(self.steps))} {self.what}"


def _wrong(expected: str, value: Any) -> _Unfit:
    return _Unfit(f"must be {expected}, but it is {str(value)[:80]!r}")


# Records have thousands of values of a few types, so what an annotation means is found out once.
@cache
def _converter(hint: Any) -> Callable[[Any], Any]:
    """Return the function that checks and converts a value of an annotation. Raises _Unfit."""
    origin, parts = get_origin(hint), get_args(hint)
    if hint is Any:
        return lambda value: value
    if origin in (Union, types.UnionType):
        one = _converter(next(each for each in parts if each is not type(None)))
        return lambda value: None if value is None else one(value)
    if is_dataclass(hint):
        return partial(_built, hint)
    if is_typeddict(hint):
        return partial(_typed, hint)
    if origin is tuple:
        return partial(_items, parts)
    if origin is list:
        return lambda value: list(_items((parts[0], ...), value))
    if origin is dict:
        return partial(_table, parts[1])
    if origin is Annotated:
        return partial(_bounded, parts[0], parts[1])
    return partial(_plain, hint)


@cache
def _fields(kind: Any) -> tuple[list[str], dict[str, Callable[[Any], Any]]]:
    """Return the names of a dataclass that a record must have, and the converters of all its fields."""
    hints = get_type_hints(kind, include_extras=True)
    needed = [each.name for each in fields(kind) if each.default is MISSING and each.default_factory is MISSING]
    return needed, {each.name: _converter(hints[each.name]) for each in fields(kind)}


def _built(kind: Any, raw: Any) -> Any:
    if not isinstance(raw, dict):
        raise _wrong("an object", raw)
    needed, converters = _fields(kind)
    for name in needed:
        if name not in raw:
            message = f"lacks the field '{name}'"
            raise _Unfit(message)
    return kind(**_converted(converters, raw))


def _converted(converters: Mapping[str, Callable[[Any], Any]], raw: dict[str, Any]) -> dict[str, Any]:
    """Return the known keys of an object with converted values."""
    found = {}
    for key, converter in converters.items():
        if key in raw:
            try:
                found[key] = converter(raw[key])
            except _Unfit as error:
                raise error.inside(f".{key}") from None
    return found


@cache
def _keys(kind: Any) -> tuple[list[str], dict[str, Callable[[Any], Any]]]:
    """Return the keys that a typed dictionary must have, sorted, and the converters of all its keys."""
    hints = get_type_hints(kind, include_extras=True)
    return sorted(kind.__required_keys__), {key: _converter(hint) for key, hint in hints.items()}


def _typed(kind: Any, value: Any) -> dict[str, Any]:
    """Check the keys that a typed dictionary declares; others are kept as they are."""
    if not isinstance(value, dict):
        raise _wrong("an object", value)
    required, converters = _keys(kind)
    for key in required:
        if key not in value:
            message = f"lacks the field '{key}'"
            raise _Unfit(message)
    return {**value, **_converted(converters, value)}


def _bounded(kind: Any, least: int, value: Any) -> Any:
    found = _plain(kind, value)
    if found < least:
        raise _wrong(f"at least {least}", value)
    return found


def _items(parts: tuple[Any, ...], value: Any) -> tuple[Any, ...]:
    if not isinstance(value, (list, tuple)):
        raise _wrong("a list", value)
    kinds = [parts[0]] * len(value) if parts[-1] is Ellipsis else list(parts)
    if len(kinds) != len(value):
        raise _wrong(f"a list of {len(kinds)}", value)
    found = []
    for place, (kind, each) in enumerate(zip(kinds, value)):  # noqa: B905 - interpreters of frameworks may be older
        try:
            found.append(_converter(kind)(each))
        except _Unfit as error:
            raise error.inside(f"[{place}]") from None
    return tuple(found)


def _table(kind: Any, value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise _wrong("an object", value)
    converter, found = _converter(kind), {}
    for key, each in value.items():
        try:
            found[key] = converter(each)
        except _Unfit as error:
            raise error.inside(f".{key}") from None
    return found


def _plain(kind: Any, value: Any) -> Any:
    if isinstance(value, int) and abs(value) > LARGEST:
        raise _wrong(f"at most {LARGEST}", value)
    if isinstance(value, float) and not math.isfinite(value):
        raise _wrong("a finite number", value)
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        raise _wrong({str: "a string", int: "a whole number", float: "a number", bool: "true or false"}[kind], value)
    return value
