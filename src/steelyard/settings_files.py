"""Read a TOML file strictly: every mistake names file, line and key, and suggests the nearest word."""

from __future__ import annotations

import re
from dataclasses import MISSING, fields
from typing import TYPE_CHECKING, Any

import tomllib

from steelyard.errors import UserError, nearest

if TYPE_CHECKING:
    from pathlib import Path


def read(path: Path) -> dict[str, Any]:
    """Parse a TOML file; a syntax error or an unreadable file is a UserError that says where."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except tomllib.TOMLDecodeError as error:
        raise UserError(f"{path}: not valid TOML: {error}. Mend that line.") from None
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"{path} cannot be read ({error}).") from None


def check_keys(path: Path, table: dict[str, Any], where: str, required: set[str], allowed: set[str]) -> None:
    """Refuse unknown and missing keys of one table."""
    prefix = f"[{where}] " if where else ""
    for key in table.keys() - allowed:
        raise UserError(
            f"{path}, line {line_of(path, key)}: {prefix}has an unknown key '{key}'.{nearest(key, list(allowed))}"
        )
    for key in sorted(required - table.keys()):
        raise UserError(f"{path}, line {line_of(path, where)}: {prefix}lacks the key '{key}'. Add it.")


def check_type(path: Path, key: str, value: Any, kinds: tuple[type, ...], meaning: str) -> None:
    """Refuse a value of the wrong type; true is no number."""
    if not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds):
        raise UserError(f"{path}, line {line_of(path, key)}: '{key}' must be {meaning}, but it is {value!r}.")


def build(path: Path, table: dict[str, Any], where: str, kind: Any) -> Any:
    """Build a frozen dataclass of plain values from a table, refusing what does not fit it."""
    known = {field.name: field for field in fields(kind)}
    required = {name for name, field in known.items() if field.default is MISSING and field.default_factory is MISSING}
    check_keys(path, table, where, required, set(known))
    return kind(**{key: _number(known[key].type, value) for key, value in table.items()})


def line_of(path: Path, key: str) -> int:
    """Return the line where a key or a table first appears; 1 when it does not."""
    pattern = re.compile(rf"^\s*(\[+\s*)?([\w.\"-]+\.)?{re.escape(key)}\b")
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if key and pattern.match(line):
            return number
    return 1


def _number(kind: Any, value: Any) -> Any:
    return float(value) if kind in ("float", float) and isinstance(value, int) else value
