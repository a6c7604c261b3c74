"""Append-only files with one JSON object per line. If the writer is killed, the last line may be incomplete."""

import json
from pathlib import Path
from typing import Any

from steelyard.files import within
from steelyard_worker import records


def append(path: Path, **values: Any) -> None:
    """Append one object; an incomplete last line is removed first. UserError: the file is a link."""
    try:
        with open(path, "a+b", opener=within.no_link) as file:
            file.seek(0)
            file.truncate(file.read().rfind(b"\n") + 1)
            file.write(json.dumps(values).encode() + b"\n")
    except OSError as error:
        if within.is_link_error(error):
            raise within.refusal(path) from None
        raise


def read(path: Path, kind: Any) -> tuple[list[Any], list[str]]:
    """Return every object of a type, and a sentence for each line that holds none; an incomplete last line is left out.

    `kind` is a dataclass or a typed dictionary. Without the file both lists are empty.
    """
    if not path.exists():
        return [], []
    try:
        *complete, _ = records.read_text(path, errors="replace").split("\n")
    except (OSError, ValueError) as error:
        return [], [f"{path} cannot be read ({error})."]
    found: list[Any] = []
    wrong: list[str] = []
    for number, line in enumerate(complete, 1):
        try:
            found.append(records.convert(kind, records.parse(line), "the line"))
        except ValueError as error:
            wrong.append(f"{path}, line {number}, is damaged and was left out: {error}.")
    return found, wrong
