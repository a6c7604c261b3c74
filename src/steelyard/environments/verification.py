"""Verifies an environment against its lock file once; a marker file with a stamp records the result."""

import json
from dataclasses import asdict, dataclass, fields
from datetime import UTC, datetime
from pathlib import Path

from steelyard.environments.folders import python_in
from steelyard.environments.interpreter import InterpreterInfo, StartError, inspect_interpreter, starts
from steelyard.environments.lock import version_order
from steelyard.environments.spec import EnvironmentSpec
from steelyard.environments.stamp import find_damage, stamp

MARKER = "steelyard-environment.json"


class BrokenError(Exception):
    """An environment differs from its lock file; the text names the first difference."""


@dataclass(frozen=True)
class Marker:
    """The record of a verified environment, written last, so that an incomplete environment has none.

    `version` is the framework's, as installed (`2.13.0+cpu`).
    """

    name: str
    version: str
    python_version: str
    packages: dict[str, str]
    verified_at: str
    stamp: str


def read_marker(folder: Path) -> Marker | None:
    """Return the marker of a folder; None when the environment is incomplete or the marker is damaged."""
    try:
        values = json.loads((folder / MARKER).read_text("utf-8"))
        return Marker(**{field.name: values[field.name] for field in fields(Marker)})
    except (OSError, ValueError, KeyError, TypeError):
        return None


def is_unchanged(folder: Path, marker: Marker) -> bool:
    """Return whether the interpreter starts and no package file changed since the verification."""
    return starts(python_in(folder)) and stamp(folder) == marker.stamp


def verify(spec: EnvironmentSpec, folder: Path) -> Marker:
    """Check every package file's size, import the framework, compare versions; write and return the marker.

    Raises `BrokenError` for the first defect.
    """
    info, lock = _inspected(spec, folder), spec.lock
    found = info.packages.get(lock.distribution, "0")
    if version_order(found) != version_order(lock.version):
        raise BrokenError(f"its lock file pins {lock.distribution} {lock.version}, but {found} is installed")
    now = datetime.now(UTC).isoformat(timespec="seconds")
    marker = Marker(spec.name, found, info.python_version, info.packages, now, stamp(folder))
    fresh = folder / f".{MARKER}.new"
    fresh.write_text(json.dumps(asdict(marker), indent=1), "utf-8")
    fresh.replace(folder / MARKER)
    return marker


def _inspected(spec: EnvironmentSpec, folder: Path) -> InterpreterInfo:
    python = python_in(folder)
    if not python.exists():
        raise BrokenError("its interpreter is missing")
    if found := find_damage(folder):
        raise BrokenError(found)
    try:
        info = inspect_interpreter(python, spec.lock.import_name)
    except StartError as error:
        raise BrokenError(f"its interpreter fails: {error}") from error
    if info.import_error:
        raise BrokenError(f"{spec.lock.import_name} cannot be imported: {info.import_error}")
    return info
