"""Read TOML files strictly: error messages give the file, the line and the key, and suggest the nearest known key."""

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any

import tomllib

from steelyard.errors import UserError, nearest

HEADER = re.compile(r"\s*(\[+)([^\]]+)\]")
# Annotation of a field -> (types accepted from a file, their description in error messages).
MEANINGS: dict[str, tuple[tuple[type, ...], str]] = {
    "str": ((str,), "a string"),
    "int": ((int,), "a whole number"),
    "float": ((int, float), "a number"),
    "bool": ((bool,), "true or false"),
    "float | None": ((int, float), "a number"),
    "int | None": ((int,), "a whole number"),
    "Any": ((bool, int, float, str), "true or false, a number or a string"),
    "tuple[str, ...]": ((list,), "a list of strings"),
    "tuple[int, ...]": ((list,), "a list of whole numbers"),
    "tuple[float, ...]": ((list,), "a list of numbers"),
    "tuple[Any, ...]": ((list,), "a list"),
    "dict[str, str]": ((dict,), "a table of strings"),
    "dict[str, float]": ((dict,), "a table of numbers"),
    "dict[str, Any]": ((dict,), "a table"),
}
ITEMS = {"tuple[str, ...]": (str,), "tuple[int, ...]": (int,), "tuple[float, ...]": (int, float)}
VALUES: dict[str, tuple[tuple[type, ...], str]] = {
    "dict[str, str]": ((str,), "a string"),
    "dict[str, float]": ((int, float), "a number"),
}
# Every other annotation.
LIST_OF_TABLES = ((list,), "a list of tables")
OF_TABLES = ((dict,), "a table of tables")


def read(path: Path) -> dict[str, Any]:
    """Parse a TOML file; UserError: it cannot be read or has a syntax error."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except tomllib.TOMLDecodeError as error:
        raise UserError(f"{path}: not valid TOML: {error}. Fix that line.") from None
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"{path} cannot be read ({error}).") from None


def check_keys(path: Path, table: dict[str, Any], where: str, required: set[str], allowed: set[str]) -> None:
    """Reject unknown and missing keys of one table."""
    subject = _title(where)
    for key in sorted(table.keys() - allowed):
        raise wrong(path, key, where, f"{subject} has an unknown key '{key}'.{nearest(key, list(allowed))}")
    for key in sorted(required - table.keys()):
        raise wrong(path, "", where, f"{subject} lacks the key '{key}'. Add it.")


def check_type(path: Path, key: str, value: Any, kinds: tuple[type, ...], meaning: str, where: str = "") -> None:
    """Reject a value of the wrong type in the table [where]; true and false are not accepted as numbers."""
    if not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds):
        raise wrong(path, key, where, f"'{key}' must be {meaning}, but it is {value!r}.")


def check_one_of(path: Path, key: str, value: Any, values: Iterable[Any], where: str = "") -> None:
    """Refuse a value of the table [where] that is not among those given."""
    known = list(values)
    if value not in known:
        raise wrong(path, key, where, f"'{key}' must be one of {', '.join(map(repr, known))}, but it is {value!r}.")


def build(path: Path, table: Any, where: str, kind: Any, **given: Any) -> Any:
    """Build a dataclass from a table and the fields `given`; UserError: a key or a type does not match its fields.

    The key of a field is its name, or `key` in its metadata. Tables of tables stay as they are.
    """
    parent, _, name = where.rpartition(".")
    check_type(path, name, table, (dict,), "a table", parent)
    known = {field.metadata.get("key", field.name): field for field in fields(kind) if field.name not in given}
    required = {key for key, each in known.items() if each.default is MISSING and each.default_factory is MISSING}
    check_keys(path, table, where, required, set(known))
    values = {known[key].name: _fit(path, where, key, str(known[key].type), value) for key, value in table.items()}
    return kind(**given, **values)


def wrong(path: Path, key: str, where: str, sentence: str) -> UserError:
    """Return the error for a key in the table [where]."""
    return UserError(f"{path}, line {line_of(path, key, where)}: {sentence}")


def line_of(path: Path, key: str, where: str = "") -> int:
    """Return the line of a key in the table [where]; otherwise that of the table's header; 1 if the file has neither.

    The tables of a list [[name]] are `name[0]`, `name[1]` and so on.
    """
    table, header_line, count = "", 1, Counter[str]()
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if header := HEADER.match(line):
            table = re.sub(r"[\s\"']", "", header[2])
            if header[1] == "[[":
                count[table] += 1
                table = f"{table}[{count[table] - 1}]"
            if table == ".".join(filter(None, (where, key))):
                return number
            header_line = number if table == where else header_line
        elif table == where and key and re.match(rf"\s*[\"']?{re.escape(key)}[\"']?\s*[=.]", line):
            return number
    return header_line


def _title(where: str) -> str:
    """Return `the file`, `[table]`, or `table 2 of [[list]]`."""
    if listed := re.fullmatch(r"(.+)\[(\d+)\]", where):
        return f"table {int(listed[2]) + 1} of [[{listed[1]}]]"
    return f"[{where}]" if where else "the file"


def _fit(path: Path, where: str, key: str, annotation: str, value: Any) -> Any:
    kinds, meaning = MEANINGS.get(annotation, LIST_OF_TABLES if annotation.startswith("tuple[") else OF_TABLES)
    check_type(path, key, value, kinds, meaning, where)
    if annotation in ITEMS:
        for each in value:
            check_type(path, key, each, ITEMS[annotation], meaning, where)
    if annotation in VALUES:
        for name, each in value.items():
            check_type(path, name, each, *VALUES[annotation], ".".join(filter(None, (where, key))))
    if list in kinds:
        return tuple(value)
    return float(value) if annotation == "float" else value
