"""Read TOML files strictly: error messages give the file, the line and the key, and suggest the nearest known key.

Numbers are finite, and within the range that the metadata of their field names (`steelyard.files.ranges`).
"""

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any

import tomllib

from steelyard.errors import UserError, nearest
from steelyard.files.ranges import Range

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
# TOML has no larger whole number, and neither have SQLite and NumPy.
LARGEST = 2**63 - 1


def read(path: Path) -> dict[str, Any]:
    """Parse a TOML file; UserError: it cannot be read, has a syntax error, or a number that is infinite, NaN or too large."""
    try:
        found = tomllib.loads(path.read_text(encoding="utf-8"))
        _check_numbers(path, "", "", found)
    except tomllib.TOMLDecodeError as error:
        raise UserError(f"{path}: not valid TOML: {error}. Fix that line.") from None
    except (OSError, ValueError) as error:  # ValueError: not UTF-8, or a number with thousands of digits
        raise UserError(f"{path} cannot be read ({error}).") from None
    except RecursionError:
        raise UserError(
            f"{path}: lists or tables are nested too deeply. Write fewer of them inside each other."
        ) from None
    return found


def check_keys(path: Path, table: dict[str, Any], where: str, required: set[str], allowed: set[str]) -> None:
    """Reject unknown and missing keys of one table."""
    subject = title(where)
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


def check_range(path: Path, key: str, value: Any, allowed: Range, where: str = "") -> None:
    """Refuse a number of the table [where], or a list or a table with one, that is not in the range."""
    if isinstance(value, dict):
        for name, each in value.items():
            check_range(path, name, each, allowed, ".".join(filter(None, (where, key))))
        return
    for each in value if isinstance(value, (list, tuple)) else (value,):
        if not allowed.holds(each):
            which = "it" if each is value else "one"
            raise wrong(path, key, where, f"'{key}' must be {allowed.words}, but {which} is {each!r}.")


def build(
    path: Path, table: Any, where: str, kind: Any, ranges: Mapping[str, Range] | None = None, **given: Any
) -> Any:
    """Build a dataclass from a table and the fields `given`; UserError: a key, a type or a number does not match its fields.

    The key of a field is its name, or `key` in its metadata. The range of its numbers is `range` in its metadata; of a class
    whose file has none, it is in `ranges`, by the field's name. Tables of tables stay as they are.
    """
    parent, _, name = where.rpartition(".")
    check_type(path, name, table, (dict,), "a table", parent)
    known = {field.metadata.get("key", field.name): field for field in fields(kind) if field.name not in given}
    required = {key for key, each in known.items() if each.default is MISSING and each.default_factory is MISSING}
    check_keys(path, table, where, required, set(known))
    values = {known[key].name: _fit(path, where, key, str(known[key].type), value) for key, value in table.items()}
    for key in table:
        if allowed := known[key].metadata.get("range") or (ranges or {}).get(known[key].name):
            check_range(path, key, table[key], allowed, where)
    return kind(**given, **values)


def wrong(path: Path, key: str, where: str, sentence: str) -> UserError:
    """Return the error for a key in the table [where]."""
    return UserError(f"{path}, line {line_of(path, key, where)}: {sentence}")


def line_of(path: Path, key: str, where: str = "") -> int:
    """Return the line of a key in the table [where]; otherwise that of the table's header, or of a key that holds the table.

    It is 1 if the file has none of these. The tables of a list [[name]] are `name[0]`, `name[1]` and so on.
    """
    table, header_line, count = "", 0 if where else 1, Counter[str]()
    own = re.escape(re.sub(r"\[\d+\]$", "", key))  # the line of a list is that of its items
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if header := HEADER.match(line):
            table = re.sub(r"[\s\"']", "", header[2])
            if header[1] == "[[":
                count[table] += 1
                table = f"{table}[{count[table] - 1}]"
            if table == ".".join(filter(None, (where, key))):
                return number
            header_line = number if table == where else header_line
        elif table == where and key and re.match(rf"\s*[\"']?{own}[\"']?\s*[=.]", line):
            return number
    if header_line:
        return header_line
    parent, _, name = where.rpartition(".")
    return line_of(path, re.sub(r"\[\d+\]$", "", name), parent)


def _check_numbers(path: Path, where: str, key: str, value: Any) -> None:
    """Refuse a number that is not finite, or larger than TOML has, in the value of a key or in the values inside it."""
    if isinstance(value, dict):
        for name, each in value.items():
            _check_numbers(path, ".".join(filter(None, (where, key))), name, each)
    elif isinstance(value, list):
        for place, each in enumerate(value):
            _check_numbers(path, where, f"{key}[{place}]" if isinstance(each, dict) else key, each)
    elif isinstance(value, float) and not math.isfinite(value):
        raise wrong(path, key, where, f"'{key}' must be a finite number, but it is {value!r}.")
    elif isinstance(value, int) and abs(value) > LARGEST:
        raise wrong(path, key, where, f"'{key}' is too large. It must be from {-LARGEST:,} to {LARGEST:,}.")


def title(where: str) -> str:
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
