"""The environments in the cache: their state, their disk space, their removal."""

import shutil
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from steelyard.environments.folders import environments_folder, locked, python_in, state_folder
from steelyard.environments.interpreter_cache import unchanged
from steelyard.environments.verification import completed_at
from steelyard.errors import UserError, nearest
from steelyard.files.folders import remove_folder, size_bytes

# A file was touched since the environment was verified.
UNCHECKED = "unchecked"


@dataclass(frozen=True)
class CachedEnvironment:
    """One environment on disk.

    `state` is `ready`, `unchecked` (a file was touched since it was verified; the next use verifies it, and rebuilds it if it is
    broken), or `unfinished`. `verified_at`: when it was completed. `version` is the lock file's. Package files can be hard
    links into uv's own cache, so removing an environment can free less than `size_bytes`.
    """

    folder: Path
    framework: str
    version: str
    accelerator: str
    size_bytes: int
    state: str
    verified_at: str

    @property
    def names(self) -> tuple[str, str, str]:
        """The names under which the user can remove it."""
        return self.framework, self.name, self.folder.name

    @property
    def name(self) -> str:
        return f"{self.framework}@{self.version}"

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {**asdict(self), "name": self.name, "folder": str(self.folder)}


def list_environments() -> list[CachedEnvironment]:
    """Return all environments in the cache, unfinished ones included."""
    folders = environments_folder()
    if not folders.is_dir():
        return []
    return [_described(folder) for folder in sorted(folders.iterdir()) if _is_environment(folder)]


def remove(names: list[str]) -> list[CachedEnvironment]:
    """Remove environments by framework (all of its versions), `framework@version` or folder name.

    `["all"]` removes all. Returns what was removed; raises `UserError` for an unknown name.
    """
    cached = list_environments()
    chosen: list[CachedEnvironment] = []
    for name in names:
        found = [one for one in cached if name in ("all", *one.names)]
        if not found and name != "all":
            known = sorted({each for one in cached for each in one.names[:2]})
            raise UserError(f"There is no environment '{name}' on this machine.{nearest(name, known)}")
        chosen += [one for one in found if one not in chosen]
    for one in chosen:
        with locked(one.folder):
            shutil.rmtree(state_folder(python_in(one.folder)), ignore_errors=True)
            remove_folder(one.folder)
    return chosen


def _is_environment(folder: Path) -> bool:
    return not folder.name.startswith(".") and folder.name.count("-") >= 3 and folder.is_dir()


def _described(folder: Path) -> CachedEnvironment:
    framework, version, accelerator, _ = folder.name.rsplit("-", 3)
    completed = completed_at(folder)
    state = "unfinished" if not completed else "ready" if unchanged(python_in(folder)) else UNCHECKED
    return CachedEnvironment(folder, framework, version, accelerator, size_bytes(folder), state, completed)
