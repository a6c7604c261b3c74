"""Append-only files with one JSON object per line. If the writer is killed, the last line may be incomplete."""

import json
from pathlib import Path
from typing import Any

from steelyard.errors import UserError


def append(path: Path, **values: Any) -> None:
    """Append one object; an incomplete last line is removed first."""
    with path.open("a+b") as file:
        file.seek(0)
        file.truncate(file.read().rfind(b"\n") + 1)
        file.write(json.dumps(values).encode() + b"\n")


def read(path: Path) -> list[dict[str, Any]]:
    """Return every object except an incomplete last line; an empty list if there is no file.

    UserError names a line that is not a JSON object.
    """
    if not path.exists():
        return []
    complete = path.read_text(encoding="utf-8", errors="replace").rpartition("\n")[0]
    return [_parsed(path, number, line) for number, line in enumerate(complete.splitlines(), 1)]


def _parsed(path: Path, number: int, line: str) -> dict[str, Any]:
    try:
        found = json.loads(line)
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise UserError(f"{path}, line {number}: this is not a JSON object: {line[:80]!r}. Remove the line.")
    return found
