"""Reads the tables of a reference page, and the names in the code that the tables document."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parents[2]
PAGES = ROOT / "docs" / "reference"
WORKER = ROOT / "src" / "steelyard_worker"

HEADING = re.compile(r"#+ (.+)")


def sections(page: str) -> dict[str, list[list[str]]]:
    """Return {heading: rows of its tables} of a page; backticks are removed, "" is the part before the first heading.

    A row is a list of its cells; header rows and the lines below them are excluded.
    """
    found: dict[str, list[list[str]]] = {"": []}
    heading, previous, fenced = "", "", False
    for line in (PAGES / page).read_text(encoding="utf-8").splitlines():
        fenced ^= line.startswith("```")
        if not fenced and (match := HEADING.match(line)):
            heading = match[1].replace("`", "")
            found[heading] = []
        elif line.startswith("|") and previous.startswith("|") and not line.startswith("|---"):
            found[heading].append([cell.strip().replace("`", "") for cell in line.strip("|").split(" |")])
        previous = line if line.startswith("|") else ""
    return found


def keys(page: str, heading: str) -> list[str]:
    """Return the first column of the tables under a heading."""
    return [row[0] for row in sections(page)[heading]]


def calls(folder: Path, method: str) -> Iterator[ast.Call]:
    """Yield every call `something.method(...)` in the files of a folder."""
    for path in sorted(folder.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == method:
                yield node


def text_of(node: ast.AST | None) -> str:
    """Return the text of a constant; empty for anything else."""
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""


def events_written(folder: Path) -> dict[str, set[str]]:
    """Return {event: its fields} from the calls `events.write("event", field=...)` in the files of a folder."""
    found: dict[str, set[str]] = {}
    for call in calls(folder, "write"):
        if call.args and (event := text_of(call.args[0])):
            found.setdefault(event, set()).update(keyword.arg or "**" for keyword in call.keywords)
    return found


def keywords_of(folder: Path, method: str) -> set[str]:
    """Return the names of all keyword arguments in calls of a method."""
    return {keyword.arg or "**" for call in calls(folder, method) for keyword in call.keywords}


def header_keys_read(folder: Path) -> set[str]:
    """Return the keys that code reads as `facts["key"]` or `facts.get("key")`."""
    found = set()
    for path in sorted(folder.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Subscript) and _is_facts(node.value):
                found.add(text_of(node.slice))
            elif isinstance(node, ast.Call) and _is_get(node.func):
                found.update(text_of(argument) for argument in node.args[:1])
    return found - {""}


def _is_facts(node: ast.AST) -> bool:
    name = node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
    return name == "facts"


def _is_get(node: ast.AST) -> bool:
    return isinstance(node, ast.Attribute) and node.attr == "get" and _is_facts(node.value)
