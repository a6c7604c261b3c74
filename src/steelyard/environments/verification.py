"""Verifies an environment against its lock file and its packages' RECORD files; a marker file says that it is complete."""

import json
from datetime import UTC, datetime
from pathlib import Path

from steelyard.environments.contents import Contents, find_damage, recorded
from steelyard.environments.folders import python_in, site_folders
from steelyard.environments.interpreter import IMPORT_LIMIT_S, StartError, TimeLimitError, inspect_interpreter
from steelyard.environments.interpreter_cache import Installed, Known, examine
from steelyard.environments.lock import version_order
from steelyard.environments.spec import EnvironmentSpec
from steelyard.errors import UserError
from steelyard.files import atomic

MARKER = "steelyard-environment.json"


class BrokenError(Exception):
    """An environment differs from its lock file; the text names the first difference."""


class DamagedError(BrokenError):
    """A file differs from what its package's RECORD says."""


def completed_at(folder: Path) -> str:
    """Return when an environment was completed (UTC, ISO 8601); empty when it is incomplete or the marker is damaged."""
    try:
        return str(json.loads((folder / MARKER).read_text("utf-8"))["verified_at"])
    except (OSError, ValueError, KeyError, TypeError):
        return ""


def mark_complete(spec: EnvironmentSpec, folder: Path) -> None:
    """Write the marker, the last file of an environment."""
    now = datetime.now(UTC).isoformat(timespec="seconds")
    atomic.write_text(folder / MARKER, json.dumps({"name": spec.name, "verified_at": now}, indent=1))


def verify(spec: EnvironmentSpec, folder: Path, limit_s: float = IMPORT_LIMIT_S, began_ns: int | None = None) -> Known:
    """Compare every package file with its RECORD, import the framework if one is new, and compare its version.

    `began_ns`: when the installation of the environment began (ns since 1970). Files that it wrote are not read again.
    Raises `BrokenError` for the first difference, and `UserError` when the import takes more than `limit_s` seconds.
    """
    python, lock = python_in(folder), spec.lock
    if not python.exists():
        raise BrokenError("its interpreter is missing")
    site = next(iter(site_folders(folder)), None)
    if site is None:
        raise BrokenError("its package folder is missing")
    listed = recorded(str(site))

    def judge(found: Contents, known: Contents) -> None:
        if damage := find_damage(found, str(site), listed, known):
            raise DamagedError(damage)

    installed = None if began_ns is None else Installed(listed, began_ns)
    try:
        bare = inspect_interpreter(python, "", limit_s)
        if foreign := [path for path in bare.folders if path.endswith("-packages") and not site.samefile(path)]:
            raise BrokenError(f"it imports from {foreign[0]}")
        known = examine(python, bare, lock.import_name, limit_s, judge, installed)
    except TimeLimitError as error:
        raise UserError(
            f"The environment {spec.name} does not answer: `import {lock.import_name}` gave no result within {limit_s:.0f} s. "
            "Allow more time with --silence, or repeat this when the machine is less busy."
        ) from error
    except StartError as error:
        raise BrokenError(f"its interpreter fails: {error}") from error
    if known.info.import_error:
        raise BrokenError(f"{lock.import_name} cannot be imported: {known.info.import_error}")
    version = known.info.packages.get(lock.distribution, "0")
    if version_order(version) != version_order(lock.version):
        raise BrokenError(f"its lock file pins {lock.distribution} {lock.version}, but {version} is installed")
    return known
