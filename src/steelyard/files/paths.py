"""The folders that steelyard writes to: a cache, which can be rebuilt, the runs, which cannot, and a key of the user's."""

import contextlib
import os
import shlex
from pathlib import Path

PRIVATE = 0o700


def cache_folder() -> Path:
    """Return the folder for environments, prepared data, weights and certificates."""
    return _folder("STEELYARD_CACHE", "user_cache_path")


def runs_folder() -> Path:
    """Return the folder that holds one folder per run."""
    return _folder("STEELYARD_RUNS", "user_data_path") / "runs"


def state_folder() -> Path:
    """Return the folder for what must be kept, and belongs to no run."""
    return _folder("STEELYARD_STATE", "user_state_path")


def named(run: Path) -> str:
    """Return the name of the run in this folder as a command takes it, with the folder of runs if that is not the usual one."""
    return shlex.join([run.name, *runs_option(run)])


def runs_option(run: Path) -> list[str]:
    """Return the argument that names the folder of runs in which this run is; none if commands look there anyway."""
    root = run.absolute().parent
    return [] if root.resolve() == runs_folder().resolve() else ["--runs", str(root)]


def make_private(folder: Path) -> None:
    """Create a folder that only its user can read. OSError: it cannot be created.

    A folder that exists keeps its permissions if the user has chosen it; others may share it on purpose.
    """
    folder.mkdir(PRIVATE, parents=True, exist_ok=True)
    if folder in (_default("user_cache_path"), _default("user_data_path") / "runs"):
        with contextlib.suppress(OSError):  # a read-only disk
            folder.chmod(PRIVATE)


def _folder(variable: str, kind: str) -> Path:
    value = os.environ.get(variable)
    return Path(value).expanduser().absolute() if value else _default(kind)


def _default(kind: str) -> Path:
    import platformdirs

    path: Path = getattr(platformdirs, kind)("steelyard", appauthor=False)
    return path
