"""Schedules of the learning rate in spec.toml: which keys belong together, and which values make sense."""

import math
from pathlib import Path
from typing import Any

from steelyard.files import settings_files
from steelyard.files.ranges import Range
from steelyard_worker.case import RateSchedule

KEYS = {"constant": set[str](), "step": {"factor", "every", "at"}, "cosine": {"length"}}
"""Kind -> the keys that belong to it, beside `unit` and `warmup`."""
RANGES = {"every": Range(0), "warmup": Range(0)}
"""Those of every kind. They are not in the worker's `RateSchedule`, because a change of its file renews all certificates."""


def read(path: Path, where: str, table: Any) -> RateSchedule:
    """Read one table of a schedule. UserError: a key is unknown, missing or of another kind, or a value makes no sense."""
    found: RateSchedule = settings_files.build(path, table, where, RateSchedule, RANGES)
    settings_files.check_one_of(path, "kind", found.kind, list(KEYS), where)
    settings_files.check_one_of(path, "unit", found.unit, ["epochs", "steps"], where)
    for key in sorted(set().union(*KEYS.values()) - KEYS[found.kind]):
        if key in table:
            sentence = f"'{key}' has no effect on a {found.kind} learning rate. Remove it."
            raise settings_files.wrong(path, key, where, sentence)
    if wrong := _flaw(found):
        raise settings_files.wrong(path, wrong[0], where, wrong[1])
    return found


def _flaw(found: RateSchedule) -> tuple[str, str] | None:
    """Return the key that is wrong, and a sentence; None where nothing is."""
    if found.kind == "cosine" and found.length < 1:
        return "length", "a cosine learning rate needs 'length', a whole number of at least 1."
    if found.kind != "step":
        return None
    if not 0 < found.factor < math.inf or found.factor == 1:
        return "factor", "a step learning rate needs 'factor', a number above 0 other than 1."
    if (found.every > 0) == bool(found.at):
        return (
            "every",
            "a step learning rate needs either 'every', a whole number of at least 1, or 'at', a list of places.",
        )
    if any(low >= high for low, high in zip((0, *found.at), found.at, strict=False)):
        return "at", f"'at' must be whole numbers from 1 in increasing order, but it is {list(found.at)}."
    return None
