"""Read the job of a recorded process. The jobs of a run are equal but for few values, so what is equal is checked once."""

import json
from dataclasses import replace
from functools import cache, lru_cache
from typing import Any, get_type_hints

from steelyard_worker import protocol, records
from steelyard_worker.protocol import Job

OF_EACH = ("folder", "round", "attempt", "spawned_ns")
"""What differs between the processes of one contender."""
KEPT = 1024

# The key is the whole text that was read, so that what is kept is never older than the file.
_checked = lru_cache(KEPT)(protocol.from_line)


def read(text: str) -> Job:
    """Return what `protocol.from_line` returns. Equal cases are the same object. ValueError: as there."""
    try:
        return _read(text)
    except ValueError:
        return protocol.from_line(text)  # its sentence names the first field that is wrong


def _read(text: str) -> Job:
    raw = records.parse(text)
    if not isinstance(raw, dict) or "folder" not in raw:
        message = "it is no job"
        raise ValueError(message)
    own = {name: records.convert(_hints()[name], raw.pop(name), name) for name in OF_EACH if name in raw}
    return replace(_checked(json.dumps(raw | {"folder": ""})), **own)


@cache
def _hints() -> dict[str, Any]:
    return get_type_hints(Job, include_extras=True)
