"""Recorded values as names and texts: nested values, lists of equal records as tables, and facts about a machine."""

from typing import Any

from steelyard.wording.notation import significant

Table = tuple[str, list[str], list[list[str]]]
"""Name, headings, rows."""


def tables(values: dict[str, Any]) -> list[Table]:
    """Return (name, headings, rows) of the values that are lists of records with equal keys."""
    found = [(name, rows) for name, rows in values.items() if _is_table(rows)]
    return [(name, list(rows[0]), [[text(value) for value in row.values()] for row in rows]) for name, rows in found]


def without_tables(values: dict[str, Any]) -> dict[str, Any]:
    """Return the values that are neither tables nor empty."""
    return {
        name: value for name, value in values.items() if not _is_table(value) and value not in (None, "", (), [], {})
    }


def facts(values: Any, prefix: str = "") -> list[tuple[str, str]]:
    """Return nested values as (dotted name, text), in order."""
    if isinstance(values, dict):
        return [
            fact for name, value in values.items() for fact in facts(value, f"{prefix}.{name}" if prefix else str(name))
        ]
    if isinstance(values, (list, tuple)) and any(isinstance(value, dict) for value in values):
        return [fact for place, value in enumerate(values, 1) for fact in facts(value, f"{prefix} {place}")]
    return [(prefix, text(values))]


def host_facts(host: dict[str, Any]) -> list[tuple[str, str]]:
    """Return the known facts about a machine, with sizes in KiB, MiB or GiB."""
    found = []
    for name, value in facts({name: value for name, value in host.items() if name != "unknown"}):
        is_size = value.isdigit() and len(value) < 20 and ("bytes" in name or "caches" in name)
        shown = name.replace("_bytes", "").replace("_", " ").replace(".", " ")
        found.append((shown, size(int(value)) if is_size else value))
    return [(name, value) for name, value in found if value != "unknown"]


def text(value: Any) -> str:
    """Return one value as text."""
    if isinstance(value, bool) or value is None:
        return {True: "yes", False: "no", None: "unknown"}[value]
    if isinstance(value, (list, tuple)):
        return ", ".join(map(text, value)) or "none"
    if isinstance(value, float):
        return f"{value:.6g}"
    return str(value) or "none"


def size(count: int) -> str:
    """Return a number of bytes with three significant digits and its unit."""
    for scale, unit in ((2**30, "GiB"), (2**20, "MiB")):
        if count >= scale:
            return f"{significant(count / scale)} {unit}"
    return f"{significant(count / 2**10)} KiB"


def _is_table(rows: Any) -> bool:
    if not isinstance(rows, list) or not rows:
        return False
    return all(isinstance(row, dict) and list(row) == list(rows[0]) for row in rows)
